"""Store rules, schedules, deliveries and start links."""
