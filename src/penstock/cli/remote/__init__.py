"""Commands that call a server over HTTP."""
