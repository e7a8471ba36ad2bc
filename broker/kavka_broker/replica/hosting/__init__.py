"""Which replicas this broker has: opened, moved, cleaned and given up as the controller has committed it."""
