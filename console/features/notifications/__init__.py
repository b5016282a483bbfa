"""Notifications: event rules, schedules, their targets and deliveries."""
