"""Sockets: listeners, connections, ordered answers, muting. The only place with network I/O."""
