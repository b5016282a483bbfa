"""The page of one execution, its fragments, and what a person can do to it.

``page_parts`` puts the page together; each other module gives one of its parts or actions.
"""
