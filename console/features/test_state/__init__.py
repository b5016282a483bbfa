"""TestState: run one state with one input, for the API and for the pages."""
