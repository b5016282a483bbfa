"""The pages of alarms: of one state machine with forms, and of all."""
