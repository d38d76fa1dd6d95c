"""The doors of OpenAI's speech and transcriptions."""
