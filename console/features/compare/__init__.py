"""Compare: two executions side by side, up to where they part."""
