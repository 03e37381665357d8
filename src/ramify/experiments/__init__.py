"""Many runs from one file: data x models x seeds, each an ordinary model folder, and the results they leave."""
