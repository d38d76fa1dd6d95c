"""Sign-in by OpenID Connect: providers, tokens, attempts, sessions."""
