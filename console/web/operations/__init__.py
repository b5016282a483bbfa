"""The operations page: workers, availability, and the oldest waiting work."""
