"""The pages of masking: which paths a project masks, and showing what is masked for a while.

The masking itself, which the API and the worker use, too, is ``console.masking``.
"""
