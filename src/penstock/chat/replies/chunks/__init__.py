"""OpenAI's own dialect of replies: read, repaired, passed through, written."""
