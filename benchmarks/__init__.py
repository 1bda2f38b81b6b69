"""Measures our own speed, beside what it is compared with in the same run. Nothing here is a test."""
