"""Read an execution's history: the visited states, their times, their attempts, their results.

Theory of operation
===================

The engine writes a history, and so does AWS: a list of events, each with a number, a type, a time
and the number of the event that it followed. Pages want the opposite view: the states that were
visited, for how long, how often, and with which result. This package computes that view from the
events. It never writes, and reads histories of AWS as well as of the engine.

* ``event_types`` is the one table of event types. A type has a *family* (its subject: a task, a
  Map, the execution), a *stage* (scheduled, started, failed) and an *effect* (its change of
  visits). No other module takes the name of a type apart.
* ``batch`` has the two forms in which events come: one by one, or as columns.
* ``visits`` keeps the visits: a *visit* is one stay of one line of control in one state, named by
  the number of the event that entered the state. It also has the lines of control, the attempts of
  Parallels and Maps, and the total time of overlapping visits.
* ``fold`` is the algorithm. ``Trace`` takes events in order, in any portions, and keeps the
  visits up to date; its module says how a line of control is found from the chain of events.
  ``EventKind`` holds the common facts of all events of one type and one state.
* ``paint`` is the shortest use of it: the status of each state of a whole history.

An example: a Task that fails once and is retried. The numbers are those of the events::

    1 ExecutionStarted
    2 TaskStateEntered        visit 2 of the state begins
    3 LambdaFunctionScheduled attempt 1 begins
    4 LambdaFunctionStarted
    5 LambdaFunctionFailed    a Catch could follow; the visit continues
    6 LambdaFunctionScheduled attempt 2 begins: the same visit
    7 LambdaFunctionStarted
    8 LambdaFunctionSucceeded
    9 TaskStateExited         visit 2 is over, SUCCEEDED, with 2 attempts
"""
