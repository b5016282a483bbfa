"""The drawing of a definition: the layout by Graphviz, its cache, and the formats it is written in.

The package draws definitions; the package ``execution`` paints on a drawing what happened.
"""
