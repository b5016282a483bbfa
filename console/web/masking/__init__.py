"""Pages of masking: edit a project's masked paths, and reveal masked values for a while.

``console.masking`` does the masking itself, also for the API and the worker.
"""
