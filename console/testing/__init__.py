"""Tools for tests of state machines in other projects: the pytest plugin and its server fixture.

The package is imported into other projects' tests, so it imports neither Django nor settings, and
boto3 only when a client is requested. The server is a separate process.
"""
