"""Protect the audit: a chain of hashes, its check, retention, and a stream to another system."""
