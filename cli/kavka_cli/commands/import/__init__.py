"""The commands of `kavka import`."""

HELP = "Translate the resources of another operator."
METAVAR, TITLE = "OPERATOR", "operators"
