"""The Kafka protocol as handlers: one file an API key, named by key and request."""
