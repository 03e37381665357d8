"""Trained models over HTTP, and a web page: `ramify serve`. Needs the extra `serve`."""
