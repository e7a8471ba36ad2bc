"""Records of share groups (KIP-932): windows at leaders of partitions, their states in `__share_group_state`."""
