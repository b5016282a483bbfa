"""The audit: its pages, a chain of hashes, retention, and a stream to another system."""
