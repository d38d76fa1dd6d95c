"""The embedding engine: MiniLM as a child process, started on demand and ended when idle.

- `word_pieces` splits a text into tokens, and `encoder` turns tokens into vectors.
- `embedding_child` is the process that serves both, and `embedding_server` starts it.
"""
