"""The editor of definitions: writing, checking while a person types, and saving."""
