"""The door of Anthropic's Messages: its requests, replies and errors."""
