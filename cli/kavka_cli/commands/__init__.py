"""The commands of `kavka`, a file each: `HELP`, `add_options(parser)` and `run(options)`. See `registry`."""

ORDER = (
    "up",
    "down",
    "logs",
    "apply",
    "diff",
    "delete",
    "plan",
    "get",
    "describe",
    "approve",
    "restart",
    "hold",
    "release",
    "wait",
    "explain",
    "top",
    "topics",
    "groups",
    "quota",
    "doctor",
    "export",
    "audit",
    "demo",
    "version",
)
"""The commands as the help lists them; others follow by name."""
