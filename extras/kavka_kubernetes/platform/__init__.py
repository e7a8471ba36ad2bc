"""Clusters on Kubernetes: their resources as an API server keeps them, and what is written there."""
