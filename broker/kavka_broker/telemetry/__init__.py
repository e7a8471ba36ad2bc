"""Metrics of clients as the broker takes them (KIP-714): unpacked in a thread, kept for a scrape, passed on."""
