"""State machines in files: readers of each tool's format, checks, and their deployment."""
