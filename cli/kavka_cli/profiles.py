"""Profiles: each is a Kafka by a name, so that its addresses and its login need not be typed at every command.

A profile is a file of properties as Kafka's own tools take it, in a directory of the user's alone; what only commands
of Kavka know begins with `kavka.`. It may have a password, so that this user alone may read it, and what is printed of
it has none. `current` beside the profiles names the one that commands take where nothing names another cluster.
"""

import os
import re
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from kavka_broker.core.config.definition import ConfigError
from kavka_broker.core.config.properties import format_properties, parse_properties
from kavka_cli.client_properties import (
    BOOTSTRAP,
    CERTIFICATES,
    LOCATIONS,
    LOGIN,
    OPTION,
    TYPES,
    read_properties,
    security_of_properties,
    shown_login,
)
from kavka_cli.output import CommandError
from kavka_operator.domain.access import Security
from kavka_operator.platform.local.files import read_text, write_secret

CONFIG_VARIABLE: Final = "KAVKA_CONFIG_DIR"
PROFILE_VARIABLE: Final = "KAVKA_PROFILE"
NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
SUFFIX: Final = ".properties"
METRICS, REGISTRY = "kavka.metrics", "kavka.registry"
HIDDEN: Final = "***"
HARMLESS: Final = {"security.protocol", "sasl.mechanism", *LOCATIONS, *TYPES, *CERTIFICATES}
"""Properties whose values are no secrets; those of all others are hidden."""
ADDRESSES: Final = {BOOTSTRAP, METRICS, REGISTRY}
URL: Final = re.compile(
    r"(?P<scheme>\s*(?:[A-Za-z][A-Za-z0-9+.-]*://)?)(?P<user>.*@)?(?P<place>[^?#]*)(?P<query>.*)", re.DOTALL
)
BEFORE_URL: Final = re.compile(r",(?=\s*[A-Za-z][A-Za-z0-9+.-]*://)")
OTHERS: Final = 0o077
"""The rights on a file that users other than its owner have."""
WRITERS: Final = 0o022
"""Of those, the rights to write."""
ROOT: Final = 0


@dataclass(frozen=True, slots=True)
class Profile:
    """A Kafka: its addresses, the way in, its metrics pages and its schema registry."""

    name: str
    properties: Mapping[str, str]

    @property
    def bootstrap(self) -> str:
        return self.properties.get(BOOTSTRAP, "")

    @property
    def metrics(self) -> str:
        """URLs of metrics pages, with commas between; empty where none is known."""
        return self.properties.get(METRICS, "")

    @property
    def registry(self) -> str | None:
        """The URL of its schema registry."""
        return self.properties.get(REGISTRY)

    @property
    def security(self) -> Security:
        """The way in, as its properties have it. Raises CommandError."""
        return security_of_properties(self._of_clients, f'profile "{self.name}"')

    @property
    def login(self) -> str:
        """Protocol, mechanism and user in words. Raises CommandError."""
        found = self.security
        user = f"{found.mechanism} as {found.username}" if found.mechanism is not None else ""
        own = "by certificate" if found.certificate is not None else ""
        return " ".join(part for part in (found.protocol, user, own) if part)

    @property
    def shown(self) -> dict[str, str]:
        """Its properties without what is secret."""
        return {name: shown(name, value) for name, value in self.properties.items()}

    @property
    def _of_clients(self) -> dict[str, str]:
        return {name: value for name, value in self.properties.items() if name not in {METRICS, REGISTRY}}


def shown(name: str, value: str) -> str:
    """The value of a property without what is secret."""
    if name in ADDRESSES:
        return shown_addresses(value)
    if name == LOGIN:
        return shown_login(value)
    return value if name in HARMLESS else HIDDEN


def shown_addresses(text: str) -> str:
    """Addresses and URLs with commas between, without who logs in there and without what is asked.

    An @ or a comma in a password makes the rest of it no host: all before the last @ of a URL is hidden.
    """
    return ",".join(_shown_url(url) for url in BEFORE_URL.split(text))


def _shown_url(text: str) -> str:
    found = URL.fullmatch(text)
    assert found is not None, "each part of the pattern may be empty"
    user, query = found["user"] and f"{HIDDEN}@", found["query"] and f"{found['query'][0]}{HIDDEN}"
    return f"{found['scheme']}{user or ''}{found['place']}{query}"


def config_directory() -> Path:
    """`$KAVKA_CONFIG_DIR`, or `kavka` below the user's directory of settings."""
    if own := os.environ.get(CONFIG_VARIABLE):
        return Path(own)
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "kavka"


@dataclass(frozen=True, slots=True)
class Profiles:
    """The profiles of a user in a directory."""

    directory: Path
    user: int = field(default_factory=os.geteuid)

    def __iter__(self) -> Iterator[Profile]:
        """Give the profiles by name. Raises CommandError."""
        return (self.get(name) for name in self.names())

    def names(self) -> list[str]:
        """The names of the profiles. Raises CommandError where the directory is not this user's alone to write."""
        self._check()
        found = (path.name.removesuffix(SUFFIX) for path in self._directory.glob(f"*{SUFFIX}"))
        return sorted(name for name in found if NAME.fullmatch(name))

    def path(self, name: str) -> Path:
        """The file of a profile. Raises CommandError where no profile may have the name."""
        if NAME.fullmatch(name) is None:
            words = "letters, digits, dots, dashes and underscores, 63 at most, of which the first is a letter or digit"
            raise CommandError(f'"{name}" is not a name for a profile; write {words}')
        return self._directory / f"{name}{SUFFIX}"

    def get(self, name: str) -> Profile:
        """Return a profile. Raises CommandError where there is none, or others may read it."""
        path = self.path(name)
        self._check()
        try:
            mode, text = path.stat().st_mode, path.read_text(encoding="utf-8")
            properties = parse_properties(text)
        except FileNotFoundError:
            known = self.names()
            others = f"there are {', '.join(known)}" if known else "make one with `kavka profile create`"
            raise CommandError(f'there is no profile "{name}"; {others}') from None
        except OSError as problem:
            raise CommandError(f'profile "{name}": {path} cannot be read: {problem.strerror}') from problem
        except (ConfigError, UnicodeDecodeError) as problem:
            raise CommandError(f'profile "{name}": {path} is no properties file: {problem}') from problem
        if mode & OTHERS:
            raise CommandError(f'profile "{name}": other users may read {path}; chmod 600 {path}')
        return Profile(name, properties)

    def put(self, profile: Profile, *, is_new: bool = False) -> None:
        """Write a profile, as a file that this user alone may read. Raises CommandError, with `is_new` also where there
        is one of this name.
        """
        path = self.path(profile.name)
        self._check()
        with _told(path, "written"):
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            try:
                write_secret(path, format_properties(profile.properties), is_new=is_new)
            except FileExistsError:
                raise CommandError(f'there is a profile "{profile.name}"; --replace writes it anew') from None

    def delete(self, name: str) -> None:
        """Remove a profile; commands take it no more. Raises CommandError where there is none."""
        if name not in self.names():
            self.get(name)  # says that there is none
        if self.current == name:
            self.use(None)
        with _told(path := self.path(name), "deleted"):
            path.unlink(missing_ok=True)

    @property
    def current(self) -> str | None:
        """The profile that commands take where nothing names another cluster. Raises CommandError."""
        self._check()
        with _told(self._current, "read"):
            return (read_text(self._current) or "").strip() or None

    def use(self, name: str | None) -> None:
        """Let commands take a profile, or none. Raises CommandError where there is no such profile."""
        if name is None:
            with _told(self._current, "deleted"):
                self._current.unlink(missing_ok=True)
        else:
            self.get(name)
            with _told(self._current, "written"):
                write_secret(self._current, f"{name}\n")

    def _check(self) -> None:
        """Raise CommandError where another user may put profiles here: commands would send what they say elsewhere."""
        with _told(self._directory, "read"):
            try:
                found = self._directory.stat()
            except FileNotFoundError:
                return
        if found.st_uid not in {self.user, ROOT}:
            raise CommandError(f"{self._directory} is another user's; profiles are in a directory of your own")
        if found.st_mode & WRITERS:
            raise CommandError(f"other users may write {self._directory}; chmod 700 {self._directory}")

    @property
    def _directory(self) -> Path:
        return self.directory / "profiles"

    @property
    def _current(self) -> Path:
        return self._directory / "current"


@contextmanager
def _told(path: Path, done: str) -> Generator[None]:
    """Raise CommandError for what the system does not let be done with a file."""
    try:
        yield
    except OSError as problem:
        raise CommandError(f"{path} cannot be {done}: {problem.strerror}") from problem
    except UnicodeError as problem:
        raise CommandError(f"{path} cannot be {done}: what it has is not UTF-8 text") from problem


def profiles() -> Profiles:
    """The profiles of this user."""
    return Profiles(config_directory())


def default_profile() -> Profile | None:
    """The profile that the environment names, otherwise the current one; None where neither is. Raises CommandError."""
    known = profiles()
    named = os.environ.get(PROFILE_VARIABLE)
    name = known.current if named is None else named
    return known.get(name) if name else None


def new_profile(name: str, file: Path | None, more: Mapping[str, str | None]) -> Profile:
    """Return a profile of the properties in a file and of `more`. Certificates that the file names by a path from here
    are named from the root. Raises CommandError where a property is not understood, or no broker is named.
    """
    properties = {} if file is None else read_properties(file)
    for location in LOCATIONS:
        if location in properties:
            properties[location] = str(Path(properties[location]).absolute())
    made = Profile(name, {**properties, **{key: value for key, value in more.items() if value is not None}})
    if not made.bootstrap:
        raise CommandError(f"name its brokers: --bootstrap, or {BOOTSTRAP} in the file of {OPTION}")
    _ = made.security  # understood now, and not at the first command that takes it
    return made
