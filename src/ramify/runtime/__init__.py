"""Running work on this machine: threads, compiled loops, memory, imports on demand. Independent of grammars."""
