"""Mask values in a project's payloads for readers who may not see them.

``masked_execution`` collects the values at the masked paths of an execution; ``mask`` masks them in
a text. The pages and the API share both.
"""
