"""The sections of the report, one file per subject; a section without results is empty."""
