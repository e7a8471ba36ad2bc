"""What a follower does: one fetcher a leader, what it takes, and how its log is cut."""
