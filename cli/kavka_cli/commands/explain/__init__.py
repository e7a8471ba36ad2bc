"""The commands of `kavka explain`."""

HELP = "Say why something is as it is."
METAVAR, TITLE = "SUBJECT", "subjects"
