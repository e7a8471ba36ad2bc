"""Metrics that clients push to the broker (KIP-714): who is asked for which, when they may come, what is in them."""
