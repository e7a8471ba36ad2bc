"""What an installation may leave out: libraries that one command alone needs (docs/adr/0017)."""

from importlib.util import find_spec


def lacking(command: str, extra: str, *modules: str) -> str | None:
    """The distribution to install so that a command can run, in words; None if all of it is there."""
    if all(find_spec(module) is not None for module in modules):
        return None
    return f"{command} needs more than is installed: pip install 'kavka[{extra}]'"
