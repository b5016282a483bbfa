"""One's own account: sessions and the second factor."""
