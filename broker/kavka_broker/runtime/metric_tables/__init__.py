"""The rows of the metric table, by what they are about."""
