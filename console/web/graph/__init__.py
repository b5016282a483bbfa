"""The drawing of a definition: the layout by Graphviz, its cache, and the formats it is written in.

The room draws definitions. What an execution did is painted on the drawing in the room execution.
"""
