"""Draw a definition as a graph: Graphviz layout, cache of layouts, and output formats.

This package draws definitions; the package ``execution`` adds the status colours.
"""
