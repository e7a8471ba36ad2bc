"""What is drawn for Kubernetes and what is seen there; what a command asks of an API server. No library is needed."""
