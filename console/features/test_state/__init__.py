"""TestState: run one state with an input without an execution, by API and on a page."""
