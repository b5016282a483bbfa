"""Access keys of programs: service accounts, key rotation, and warnings before a key expires."""
