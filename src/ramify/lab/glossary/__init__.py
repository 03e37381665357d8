"""A grammar for a reader: what each symbol stands for, in words, as terminal text, Markdown, JSON or a page."""
