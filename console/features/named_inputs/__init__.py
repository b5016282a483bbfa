"""Named inputs: inputs of a state machine that a project shares under a name."""
