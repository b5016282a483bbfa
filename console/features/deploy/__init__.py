"""State machines in files: readers of each tool's format, checks, and their deployment.

``formats`` reads the files of other tools (one module a format) into the types of ``sources``.
``deployment`` compares these with a server and applies the difference. ``commands`` has one module
a command. Each imports only modules named before it in this list.
"""
