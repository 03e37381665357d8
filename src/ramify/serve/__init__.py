"""Trained models over HTTP, and a web page to parse and explore: `ramify serve`. Needs the extra `serve`."""
