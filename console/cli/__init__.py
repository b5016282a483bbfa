"""Client commands of ``stateyard``: they call a server's API, without Django or a data folder.

``documents`` reads files, ``connection`` finds the server, and ``output`` prints. ``commands`` has
one module for each command of the core; features have the others.
"""
