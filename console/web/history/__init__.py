"""Read an execution's history: event table, traces, and events of a visit."""
