"""Consumer groups of the classic protocol: its members, their partitions, how far they have read."""
