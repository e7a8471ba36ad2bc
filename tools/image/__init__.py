"""What the Dockerfile runs while it builds."""
