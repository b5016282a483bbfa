"""Sign-in by password or one-time link, and the change of passwords."""
