"""Rules of streams groups (KIP-1071), at their group coordinator."""
