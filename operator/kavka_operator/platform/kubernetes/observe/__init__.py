"""The state of nodes by the objects of their cluster, and objects that depend on that state. Pure."""
