"""Tools for developing the project, not part of the package."""
