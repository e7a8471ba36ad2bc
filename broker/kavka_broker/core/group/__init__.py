"""Consumer groups of the classic protocol: who is a member, who has which partitions, how far they have read."""
