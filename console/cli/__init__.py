"""Commands of a client: they reach a server by its API, and need neither Django nor a data folder.

``formats`` reads the files of other tools, one module a format, into what ``sources`` describes.
``deployment`` compares that with a server and makes the difference. ``commands`` has one module a
command. Each imports what stands before it in this list, and nothing behind it.
"""
