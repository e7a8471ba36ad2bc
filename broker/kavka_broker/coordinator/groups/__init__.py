"""Consumer groups of both protocols, share groups and streams groups: one shard of `__consumer_offsets` serves all."""
