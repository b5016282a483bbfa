"""Edits of a definition as pure functions on its text; the rest of the text stays unchanged."""
