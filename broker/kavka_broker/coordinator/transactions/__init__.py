"""The coordinator of transactions (KIP-98, KIP-890): `__transaction_state`, and markers to leaders of partitions."""
