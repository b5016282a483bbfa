"""Notifications: rules, schedules, their targets and deliveries."""
