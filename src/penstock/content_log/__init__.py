"""The content log: prompts and answers of accounts that have them logged, redacted and sealed."""
