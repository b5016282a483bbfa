"""The editor of definitions: edit as text or graph, validate while typing, keep drafts, save.

``edits`` has the changes of the text without Django; the other modules serve the page.
"""
