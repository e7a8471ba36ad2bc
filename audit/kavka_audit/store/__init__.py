"""A lake whose files are objects of an S3 store: the directory that a run works in is a mirror of them."""
