"""What is on disk: whole files, locks, tensors with checksums, model folders, checkpoints."""
