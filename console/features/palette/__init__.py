"""Command palette (Ctrl+K): search state machines, executions, states, people and pages."""
