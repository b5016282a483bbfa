"""The pages of the console, sorted into rooms by subject.

Each room has the addresses of its pages in ``urls.py``, its views in ``views.py`` or in modules
called ``*_views``, and what the views need beside them. ``console.web.urls`` joins the rooms.
Imports between rooms point one way; tests/test_architecture.py has the order and holds it.
"""
