"""One file a figure: plain values in, a matplotlib figure out. Matplotlib is imported only when one is drawn."""
