"""The actions of EventBridge and of EventBridge Scheduler."""
