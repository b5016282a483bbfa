"""Alarms on metrics and executions of a state machine: pages, CloudWatch API, evaluation."""
