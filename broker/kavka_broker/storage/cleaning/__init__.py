"""Compaction: cleaning a log in slices, and putting what was written in the place of what was read."""
