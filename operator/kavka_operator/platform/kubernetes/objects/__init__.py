"""The objects that a cluster consists of on Kubernetes, built from its resource. Pure."""
