"""Sign-in by OpenID Connect or a proxy; roles follow the groups that a provider reports."""
