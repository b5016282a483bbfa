"""The command palette: one field that finds machines, executions, states, people, pages."""
