"""One look at a cluster and what follows from it, with the faults that must not end it."""
