"""The model source: configuration and tensors of a model on disk, without its weights."""
