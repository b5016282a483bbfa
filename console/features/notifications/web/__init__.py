"""Pages of notifications: event rules, schedules, targets, and start links."""
