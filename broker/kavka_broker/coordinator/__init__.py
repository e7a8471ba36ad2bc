"""Coordinators of groups, transactions and share states, and what they have in common: shards of an internal topic."""
