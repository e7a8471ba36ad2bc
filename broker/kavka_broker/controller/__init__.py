"""The controller: decides for the cluster, writes the metadata log, and tells who listens what was committed."""
