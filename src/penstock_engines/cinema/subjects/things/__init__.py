"""Things: buildings, landmarks, instruments, food and small things."""
