"""API actions of EventBridge and EventBridge Scheduler."""
