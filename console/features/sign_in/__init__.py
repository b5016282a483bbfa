"""Sign-in by OpenID Connect: members and roles follow the groups that a provider names."""
