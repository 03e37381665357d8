"""What an experiment or a recipe will do: files read, checked and turned into runs."""
