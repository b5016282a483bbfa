"""The pure edits of a definition: text in, edit in, text out; nothing else of the text changes."""
