"""The resources of clusters as an API server keeps them."""
