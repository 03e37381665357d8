"""One file per kind of figure: values in, a matplotlib figure out. Matplotlib is imported only when one is drawn."""
