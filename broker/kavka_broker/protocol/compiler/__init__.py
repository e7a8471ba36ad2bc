"""From a message's schema to straight-line Python for one version."""
