"""Access keys of programs: service accounts, rotation, and warnings before a key expires."""
