"""The passwords of users, in their Secrets: read, drawn, written. What is to be written, `reconcile.users` decides.

Where Secrets lie, a `SecretStore` knows: the API server, or a directory of this machine. Nothing of them is kept longer
than a look, and nothing of them is in what these classes print.
"""

import secrets
import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Protocol

from kavka_operator.api.kinds import Key, key_of
from kavka_operator.api.user import KafkaUser
from kavka_operator.domain.observed import Login, NoSecret
from kavka_operator.domain.plan import DropSecret, KeepSecret
from kavka_operator.domain.user_secret import (
    ITERATIONS_MAX,
    ITERATIONS_MIN,
    NOTES,
    PASSWORD,
    Notes,
    secret_of_others,
    seen_secret,
    texts_of,
)
from kavka_operator.reconcile.users import Secret

PASSWORD_LENGTH = 32
ALPHABET = string.ascii_letters + string.digits
KEY_BYTES = 32

Place = tuple[str, str]
"""Namespace and name of a Secret."""


@dataclass(frozen=True, slots=True)
class Stored:
    """A Secret as it lies somewhere. `version` changes with it; `user` is the KafkaUser that it was made for."""

    texts: Mapping[str, str] = field(repr=False)
    version: str
    user: str | None = None


@dataclass(frozen=True, slots=True)
class Written:
    """A Secret to write for a user: a new one, or in place of the `version` that was read."""

    user: KafkaUser
    texts: Mapping[str, str] = field(repr=False)
    version: str | None


class SecretStore(Protocol):
    """A place where Secrets lie."""

    @property
    def outlives(self) -> bool:
        """Whether a Secret stays when its KafkaUser goes, until it is removed."""
        ...

    def words(self, place: Place) -> str:
        """The place of a Secret for a person."""
        ...

    def location(self, place: Place) -> str:
        """The place of a Secret for a program: its name, or a path."""
        ...

    def read(self, places: Sequence[Place]) -> Mapping[Place, Stored | NoSecret]:
        """These Secrets; those read a short while ago may be told from memory."""
        ...

    def write(self, wanted: Sequence[Written]) -> list[str]:
        """Write Secrets; of each the words for why it could not be done, empty where it was."""
        ...

    def remove(self, place: Place) -> None:
        """Remove a Secret, where it outlives its user."""
        ...


class NoStore:
    """No place for Secrets: users whose password would be made cannot be."""

    outlives = False

    def words(self, place: Place) -> str:
        return f'Secret "{place[1]}"'

    def location(self, place: Place) -> str:
        return place[1]

    def read(self, places: Sequence[Place]) -> Mapping[Place, Stored | NoSecret]:
        return dict.fromkeys(places, NoSecret("SecretMissing", "there is no place for Secrets here"))

    def write(self, wanted: Sequence[Written]) -> list[str]:
        return ["there is no place for Secrets here"] * len(wanted)

    def remove(self, place: Place) -> None:
        """Do nothing."""


@dataclass(slots=True)
class Passwords:
    """The Secrets of users of one cluster, for one look after the other."""

    store: SecretStore = field(default_factory=NoStore)
    _stored: dict[Place, Stored] = field(default_factory=dict, repr=False)
    _logins: Mapping[str, Login] = field(default_factory=dict)

    def look(self, users: Sequence[KafkaUser], logins: Mapping[str, Login] | None) -> Mapping[Key, Secret]:
        """The Secret of each user that has a password. `logins` are where clients log in, None if that is not known."""
        places = {key_of(user): place_of(user) for user in users if user.mechanism is not None}
        found = self.store.read(list(dict.fromkeys(places.values()))) if places else {}
        self._logins = logins or {}
        self._stored = {place: stored for place, stored in found.items() if isinstance(stored, Stored)}
        return {key_of(user): self._seen(user, found[places[key_of(user)]], logins) for user in users if user.mechanism}

    def words(self, user: KafkaUser) -> str:
        """The place of a user's Secret for a person."""
        return self.store.words(place_of(user))

    def location(self, user: KafkaUser) -> str:
        """The place of a user's Secret for a program."""
        return self.store.location(place_of(user))

    def keep(self, wanted: Sequence[tuple[KafkaUser, KeepSecret]], now: datetime) -> list[str]:
        """Write Secrets; of each the words for why it could not be done, empty where it was."""
        return self.store.write([self._written(user, action, now) for user, action in wanted])

    def drop(self, user: KafkaUser, action: DropSecret) -> None:
        """Remove the Secret of a user."""
        self.store.remove(place_of(user))

    def _seen(self, user: KafkaUser, stored: Stored | NoSecret, logins: Mapping[str, Login] | None) -> Secret:
        words = self.store.words(place_of(user))
        if not user.makes_password:
            return _of_others(user, stored, words)
        if isinstance(stored, NoSecret):
            return stored
        if stored.user != user.name:
            remedy = "give the KafkaUser another by spec.authentication.secretName, or the password by passwordFrom"
            return NoSecret("SecretTaken", f"{words} is there already and was not made for this KafkaUser; {remedy}")
        login = (logins or {}).get(user.mechanism or "")
        seen = seen_secret(user, stored.texts, login, is_known=logins is not None)
        return NoSecret() if seen is None else replace(seen, outlives=self.store.outlives)

    def _written(self, user: KafkaUser, action: KeepSecret, now: datetime) -> Written:
        stored = self._stored.get(place_of(user))
        before = stored.texts if stored is not None else {}
        password, notes = before.get(PASSWORD, ""), Notes.parsed(before.get(NOTES))
        if action.why or not password:
            password, notes = new_password(), None
        notes = notes or new_notes(now, user.spec.authentication.rotate)
        texts = texts_of(user, password, notes, self._logins.get(user.mechanism or ""), before)
        return Written(user, texts, stored.version if stored is not None else None)


def place_of(user: KafkaUser) -> Place:
    """The place of the Secret that a user's password is in."""
    return user.metadata.namespace, user.secret_name


def new_password() -> str:
    """A password that nobody can guess: 190 bits of chance."""
    return "".join(secrets.choice(ALPHABET) for _ in range(PASSWORD_LENGTH))


def new_notes(now: datetime, rotate: str | None) -> Notes:
    """Notes for a new password."""
    iterations = ITERATIONS_MIN + secrets.randbelow(ITERATIONS_MAX - ITERATIONS_MIN + 1)
    return Notes(now, rotate, iterations, secrets.token_urlsafe(KEY_BYTES))


def _of_others(user: KafkaUser, stored: Stored | NoSecret, words: str) -> Secret:
    """The password in a Secret of another owner."""
    source = user.spec.authentication.password_from
    assert source is not None, "otherwise the password is made"
    where = "spec.authentication.passwordFrom"
    if isinstance(stored, NoSecret):
        return NoSecret(stored.reason or "SecretMissing", f"{where}: {stored.fault or f'there is no {words}; make it'}")
    if not (password := stored.texts.get(source.key, "")):
        return NoSecret("SecretMissing", f'{where}: {words} has no "{source.key}"; add it')
    return secret_of_others(password, stored.version)
