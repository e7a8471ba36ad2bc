"""Which log directories take no new replicas (KIP-1066).

`cordoned.log.dirs` names directories as `log.dirs` does, or all of them by one asterisk. What is in a cordoned
directory is served as before; a broker whose directories are all cordoned is given no replicas.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from kavka_broker.core.config.definition import ConfigError

KEY: Final = "cordoned.log.dirs"
EVERY: Final = "*"


def cordoned(names: Sequence[str], paths: Iterable[str]) -> list[str]:
    """Return those of the paths of log directories that are cordoned."""
    return [path for path in paths if EVERY in names or path in names]


def check_cordoned(names: Sequence[str], paths: Sequence[str] | None = None) -> None:
    """Check the value of the key, also against the paths of the broker's log directories where they are known. Raises
    ConfigError.
    """
    if EVERY in names and len(names) > 1:
        raise ConfigError(KEY, f"has {EVERY} beside others; write {EVERY} alone for every directory")
    if paths is None or EVERY in names:
        return
    if strangers := [name for name in names if name not in paths]:
        raise ConfigError(KEY, f"{strangers[0]} is not in log.dirs; write directories of {','.join(paths)}, or {EVERY}")
