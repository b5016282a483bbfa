"""The first page: what runs now, what failed lately, and the latest state machines."""
