"""Speech: a voice that reads a text (hibari), and ears that write down what was said (Whisper), without a network."""
