"""The image of the cluster's metadata: one manager a concern, changed by nothing but replayed records."""
