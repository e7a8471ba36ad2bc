"""A directory of YAML files, each of which is parsed once until somebody replaces it.

`kavka up` and `kavka apply` look at thousands of these files again and again, and nearly always at the same ones: a
look costs one `stat` a file, and a file that has changed costs one parse. What is written here is JSON, which is YAML
too and takes a fiftieth of the time; a file that somebody has written by hand may be any YAML.
"""

import json
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from kavka_operator.platform.local.files import read_text, write_whole

SUFFIX = ".yaml"

Stamp = tuple[int, ...]


@dataclass(slots=True)
class Folder:
    """The YAML files of one directory, by name."""

    path: Path
    parse: Callable[[str], Any] | None = None  # another than `parsed`
    _parsed: dict[str, tuple[Stamp, dict[str, Any]]] = field(default_factory=dict)

    def stamp(self) -> Stamp:
        """A value that changes when a file comes, goes or is replaced. On a file system with coarse times two changes
        within a few milliseconds are one.
        """
        try:
            info = self.path.stat()
        except FileNotFoundError:
            return ()
        return info.st_mtime_ns, info.st_ctime_ns

    def stamps(self) -> dict[str, Stamp]:
        """The names of all files, each with a value that changes when the file is replaced."""
        try:
            with os.scandir(self.path) as entries:
                names = [entry for entry in entries if entry.name.endswith(SUFFIX) and not entry.name.startswith(".")]
                found = {entry.name: stamp for entry in names if (stamp := _stamp(entry))}
        except FileNotFoundError:
            found = {}
        if len(self._parsed) > len(found):
            self._parsed = {name: parsed for name, parsed in self._parsed.items() if name in found}
        return found

    def has(self, name: str) -> bool:
        """Whether there is such a file."""
        return (self.path / name).exists()

    def value(self, name: str) -> dict[str, Any]:
        """The map in a file, not to be changed; an empty one where there is no file, or no map in it."""
        path = self.path / name
        stamp, before = _stamp(path), self._parsed.get(name)
        if before is None or before[0] != stamp:
            before = self._parsed[name] = stamp, _map_in(path, self.parse or parsed) if stamp else {}
        return before[1]

    def write(self, name: str, value: dict[str, Any]) -> None:
        """Replace a file."""
        write_whole(self.path / name, _text_of(value))

    def remove(self, name: str) -> None:
        """Forget a file, if there is one."""
        (self.path / name).unlink(missing_ok=True)


def _stamp(file: Path | os.DirEntry[str]) -> Stamp:
    """A value that changes when the file is replaced; empty where there is none."""
    try:
        info = file.stat()
    except FileNotFoundError:
        return ()
    return info.st_ino, info.st_mtime_ns, info.st_ctime_ns, info.st_size


def _map_in(path: Path, parse: Callable[[str], Any]) -> dict[str, Any]:
    try:
        value = parse(read_text(path) or "")
    except (yaml.YAMLError, ValueError):  # such as a date that does not exist, or bytes that are not UTF-8
        return {}
    return value if isinstance(value, dict) else {}


def _text_of(value: dict[str, Any]) -> str:
    try:
        text = json.dumps(value, ensure_ascii=False, indent=2) + "\n"
        if json.loads(text) == value:
            return text if text.isascii() or is_utf8(text) else json.dumps(value, indent=2) + "\n"
    except TypeError:
        pass
    # JSON has no dates and only text as keys; such a value is written as YAML, so that it reads back the same.
    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    return str(yaml.dump(value, Dumper=dumper, sort_keys=False, allow_unicode=True, width=110))


def is_utf8(text: str) -> bool:
    """Whether the text can be written as UTF-8: half of a surrogate pair cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def parsed(text: str) -> Any:
    """The value of a YAML text. What is not JSON is read by PyYAML's C parser if it is there: ten times as fast."""
    if text.startswith("{"):
        with suppress(ValueError):
            return json.loads(text)
    return yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506 - both are safe loaders
