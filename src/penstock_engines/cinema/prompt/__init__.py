"""From the words of a prompt to a script: its place, its cast, its weather."""
