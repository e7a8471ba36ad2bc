"""The commands of `kavka quota`."""

HELP = "Find limits that fit."
METAVAR, TITLE = "WHAT", "what"
