"""Renderers: a verdict in, text out. Pure, and unaware of each other."""
