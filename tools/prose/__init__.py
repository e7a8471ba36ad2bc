"""Rules for what comments, docstrings and documents say, which vale looks at: `styles/` has them, a file a rule.

`go/` pins vale as a module of Go. `program.py` builds it once, keeps it in the cache, and asks it; `counts.py` has
what is checked. `python -m tools.prose` prints what it finds, in all of that or in the files that are named.
"""
