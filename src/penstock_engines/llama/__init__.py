"""The chat engine: llama.cpp's server as a child process, started on demand and ended when idle."""
