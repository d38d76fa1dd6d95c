"""Price lists: LiteLLM's, OpenRouter's and our own form, and the dated list that comes with Penstock."""
