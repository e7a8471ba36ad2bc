"""The metadata of the cluster: the `image`, which only replayed records change, and what `decide` makes of it."""
