"""The pages of the console, one package per subject.

A package has its URLs in ``urls.py``, its views in ``views.py`` or ``*_views.py``, and helpers
beside them. ``console.web.urls`` joins the packages. Imports between packages go one way;
tests/test_architecture.py checks the order.
"""
