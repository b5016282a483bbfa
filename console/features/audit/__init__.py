"""The audit for a company: a chain of hashes, its check, and what is sent to another system."""
