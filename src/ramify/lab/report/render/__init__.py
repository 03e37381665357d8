"""One file a form that a table can take."""
