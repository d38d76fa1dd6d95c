"""Closeness in meaning, by a sentence embedding: of prompts to places and of words to subjects."""
