"""Pictures of trees: for a terminal, as SVG, as a page, as LaTeX. No torch, no model: words, spans and numbers in."""
