"""Where the nodes of a cluster run: processes on this machine (`local`) or pods (`kubernetes`)."""
