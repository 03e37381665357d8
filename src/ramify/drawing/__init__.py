"""Pictures of trees: for a terminal, as SVG, as a page, as LaTeX. They need only words, spans and numbers, no torch."""
