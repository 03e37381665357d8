"""How work runs on this machine: threads, compiled loops, memory, imports on demand. Knows nothing about grammars."""
