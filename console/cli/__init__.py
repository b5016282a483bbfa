"""Client commands of ``stateyard``: they call a server's API, without Django or a data folder.

``formats`` reads the files of other tools (one module a format) into the types of ``sources``.
``deployment`` compares these with a server and applies the difference. ``commands`` has one module
a command. Each imports only modules named before it in this list.
"""
