"""Replays: new executions that begin in a state of an earlier one."""
