"""The pages: how people see machines and executions in a browser."""
