"""What a leader and a follower of one partition decide."""
