"""What a leader does: a partition, who waits for it to move, and its in-sync set."""
