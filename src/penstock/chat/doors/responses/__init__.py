"""OpenAI's Responses: requests are translated into chat, replies are written as response events."""
