"""The pages of the console, a package for each subject.

Each package has the addresses of its pages in ``urls.py``, its views in ``views.py`` or in modules
called ``*_views``, and what the views need beside them. ``console.web.urls`` joins the packages.
Imports between packages point one way; tests/test_architecture.py has the order and holds it.
"""
