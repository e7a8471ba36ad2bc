"""Explains the limits of a client, in the words of `kavka explain quota`."""

import time

from kavka_cli.commands.explain.quota import ANYBODY, ask, of_client
from kavka_cli.target import Target


def explain_client(target: Target, user: str, client_id: str) -> str:
    """The text about a client; without a user about anybody. Raises AdminError."""
    return "\n".join(of_client(target, ask(target), user or ANYBODY, client_id, int(time.time() * 1000)))
