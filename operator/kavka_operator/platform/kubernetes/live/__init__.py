"""Requests of the operator to an API server: the resources of clusters, and the objects that nodes are made of."""
