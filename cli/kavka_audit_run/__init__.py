"""`kavka audit run`: what a cluster tells, for the audit analytics, and their answers on the terminal."""
