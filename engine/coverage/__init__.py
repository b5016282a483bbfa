"""Test coverage of a state machine: what its executions have reached, and how to reach the rest.

* ``points`` lists the points of a definition that tests can reach: states, transitions, Choice
  rules, Retriers, Catchers, sizes of Maps, failing branches, timeouts. Each has a key.
* ``reading`` reads a history, of the engine or of AWS, and returns the keys of reached points.
* ``conditions`` finds values that make a Choice take a given rule.
* ``suggesting`` finds an input and results of Tasks that reach a point, and proves them by a run.
"""
