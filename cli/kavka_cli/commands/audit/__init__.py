"""The commands of `kavka audit`."""

HELP = "Look at the audit trail, and answer questions from it."
METAVAR, TITLE = "WHAT", "what"
ORDER = ("verify", "run", "replay", "convert")
