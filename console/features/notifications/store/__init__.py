"""The rows of rules, schedules, deliveries and start links."""
