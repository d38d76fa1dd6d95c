"""Commands that speak to a server over HTTP."""
