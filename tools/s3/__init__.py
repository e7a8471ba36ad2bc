"""A real S3 server from pinned Go modules, for the tests: versitygw, whose objects are files in a directory.

`go/` is the module: its go.mod and go.sum pin every version. `program.py` builds the server once and keeps it in the
cache; `python -m tools.s3` builds it and prints where it is.
"""
