"""Data files and their loaders: causes, rules, log patterns, metric maps, words in both languages."""
