"""Project settings: quotas, denied actions, mocks and retention set by owners, and their file."""
