"""The execution page: its parts, its polls, and its actions (stop, redrive, replay, note).

``page_parts`` assembles the page; each other module makes one part or action.
"""
