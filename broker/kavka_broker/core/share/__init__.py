"""Share groups (KIP-932): what the share coordinator keeps, and the records that a share partition has in flight."""
