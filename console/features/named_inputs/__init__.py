"""Named inputs: inputs of a state machine that a project's members save under a name and share."""
