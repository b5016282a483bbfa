"""Role rehearsal: a page that compares a state machine's calls with its role's IAM policies."""
