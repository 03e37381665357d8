"""What experiments leave in their folders: the format of the files, and all results of a folder."""
