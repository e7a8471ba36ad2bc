"""Clusters as processes on this machine: what `kavka up` runs.

The same resources, the same reconcilers, no Kubernetes.
"""
