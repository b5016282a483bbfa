"""What of a project's payloads may be read, by whoever may not see its masked values?

Pages and API hide them through ``hiding``, which finds out what masked places held in an execution;
``mask`` hides it in a text.
"""
