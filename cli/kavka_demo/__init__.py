"""The main job from end to end, with real data and real clients: what `make demo` runs."""
