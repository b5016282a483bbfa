"""Compare: two executions side by side, with the state where their paths diverge."""
