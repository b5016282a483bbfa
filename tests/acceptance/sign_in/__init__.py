"""Sign-in at a certified provider of OpenID Connect, the npm package oidc-provider."""
