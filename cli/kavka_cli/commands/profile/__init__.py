"""The commands of `kavka profile`."""

HELP = "Name a Kafka once, with its addresses and its login, and use it at other commands."
METAVAR, TITLE = "ACTION", "actions"
ORDER = ("create", "use", "list", "show", "delete", "clear")
