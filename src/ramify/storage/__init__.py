"""Files on disk: atomic writes, locks, tensors with checksums, model folders, checkpoints."""
