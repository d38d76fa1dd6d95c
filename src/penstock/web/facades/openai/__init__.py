"""OpenAI Images and Videos."""
