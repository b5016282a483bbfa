"""What answers which URL: one module a noun."""
