"""The event rules of a project: notifications, schedules, their targets, and start links."""
