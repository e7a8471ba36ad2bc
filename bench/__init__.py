"""Kavka beside Apache Kafka: the same clients, the same machine, one run (`python -m bench --help`)."""
