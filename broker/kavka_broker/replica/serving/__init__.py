"""Who reads what: fetch sessions, and what a consumer or a follower is given."""
