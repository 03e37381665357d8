"""Text and trees: reading, cleaning, the vocabulary and the built-in corpus. No torch here."""
