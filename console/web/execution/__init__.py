"""The execution page: its parts, its polls, and its actions (stop, redrive, note).

``page_parts`` assembles the page; each other module makes one part or action.
"""
