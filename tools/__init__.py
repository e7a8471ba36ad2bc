"""Scripts of the workshop: what fetches, generates, checks and sums up. Nothing here is part of a product."""
