"""Sign-in by OpenID Connect, without a provider: tests/acceptance/sign_in has one."""
