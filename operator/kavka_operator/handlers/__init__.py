"""The operator on Kubernetes: one handler a kind, which decodes, delegates and returns."""
