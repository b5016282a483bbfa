"""Test workflows in the tests of another project: the plugin of pytest, and what its fixture gives.

The package runs in somebody else's tests. So it imports neither Django nor settings, and boto3 only
when a client is asked for. The server is a process of its own.
"""
