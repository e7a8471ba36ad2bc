"""Rules of share groups (KIP-932), at their group coordinator."""
