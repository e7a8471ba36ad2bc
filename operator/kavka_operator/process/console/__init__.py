"""The operator's console: one page that shows how the clusters stand, for people. It reads and changes nothing."""
