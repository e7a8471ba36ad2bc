"""Quotas as resources: whom they limit, which of them wins, what they hide."""
