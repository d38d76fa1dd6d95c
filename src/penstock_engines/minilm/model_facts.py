"""Facts about MiniLM for modules that must not load its libraries: files, dimensions and limits."""

MODEL, VOCABULARY = "minilm.onnx", "minilm-tokenizer.json"
DIMENSIONS = 384
MAX_TOKENS = 512
"""Tokens of one text, with the two markers: the network has no more positions."""
