"""What is true of the cluster: one file a concern, changed by nothing but replayed records."""
