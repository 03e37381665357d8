"""Descriptions of grammars: what each symbol stands for, as terminal text, Markdown, JSON or a page."""
