"""The content of requests and answers for the content log: read, redacted and bounded; no I/O."""
