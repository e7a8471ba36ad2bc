"""Client quotas as the broker enforces them: who has used how much, and who has to wait."""
