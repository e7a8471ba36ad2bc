"""Requests of a command to the API server of a kubeconfig, by the standard library alone."""
