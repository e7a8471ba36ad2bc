"""What stands in the Secret of a user: its password, what a client needs beside it, and the operator's own notes.

The notes are drawn with the password and kept beside it, so that a Secret tells all by itself, whatever became of a
status. The version of a Secret is a sum of the password with a key that stands in the same Secret: who sees the version
in a status can neither read the password from it nor try guesses against it.
"""

import hmac
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

from kavka_broker.core.config.properties import format_properties
from kavka_operator.api.user import KafkaUser
from kavka_operator.domain.observed import Login, SeenSecret

PASSWORD, USERNAME = "password", "username"
MECHANISM, PROTOCOL, JAAS, BOOTSTRAP = "sasl.mechanism", "security.protocol", "sasl.jaas.config", "bootstrap.servers"
PROPERTIES: Final = "client.properties"
NOTES: Final = "kavka.json"
KEYS: Final = (USERNAME, PASSWORD, PROTOCOL, BOOTSTRAP, MECHANISM, JAAS, PROPERTIES, NOTES)
"""All keys that the operator writes into a Secret (`texts_of`)."""
MODULE: Final = "org.apache.kafka.common.security.scram.ScramLoginModule"
VERSION_LENGTH: Final = 16
ITERATIONS_MIN, ITERATIONS_MAX = 4097, 5120
"""How often a password of 32 random characters is hashed: Kafka's minimum, and what tells ours from one of others."""
OWN_ITERATIONS_MIN, OWN_ITERATIONS_MAX = 8193, 12288
"""How often a password is hashed that a person may have chosen: twice as often or more."""

Texts = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Notes:
    """The operator's notes on a password: when it was made, for which `rotate`, its hashing, the key of its version."""

    made: datetime
    rotate: str | None
    iterations: int
    key: str = field(repr=False)

    def text(self, *, is_retained: bool) -> str:
        """The notes as they are kept, with whether the Secret stays when its KafkaUser goes."""
        return json.dumps(
            {
                "made": self.made.isoformat(),
                "rotate": self.rotate,
                "iterations": self.iterations,
                "key": self.key,
                "retained": is_retained,
            }
        )

    @staticmethod
    def parsed(text: str | None) -> "Notes | None":
        """The notes of a Secret; None where they are not there, or not as they were written."""
        try:
            found = json.loads(text or "")
            made, rotate, iterations, key = (found[name] for name in ("made", "rotate", "iterations", "key"))
            moment = datetime.fromisoformat(made)
        except (ValueError, TypeError, KeyError):
            return None
        is_sound = isinstance(rotate, str | None) and isinstance(iterations, int) and isinstance(key, str)
        is_in_range = is_sound and ITERATIONS_MIN <= iterations <= ITERATIONS_MAX and moment.tzinfo is not None
        return Notes(moment, rotate, iterations, key) if is_in_range and key else None


def version_of(password: str, notes: Notes) -> str:
    """The version of a Secret with this password."""
    return hmac.digest(notes.key.encode(), password.encode(), "sha256").hex()[:VERSION_LENGTH]


def texts_of(user: KafkaUser, password: str, notes: Notes, login: Login | None, before: Texts) -> dict[str, str]:
    """All that is to stand in the Secret of a user. `before` is what stands there."""
    assert user.mechanism is not None, "only who has a password has a Secret"
    jaas = f"{MODULE} required username={_quoted(user.user_name)} password={_quoted(password)};"
    place = {} if login is None else {PROTOCOL: login.protocol, **_bootstrap(login, before.get(BOOTSTRAP))}
    settings = {**place, MECHANISM: user.mechanism, JAAS: jaas}
    texts = {
        USERNAME: user.user_name,
        PASSWORD: password,
        **settings,
        PROPERTIES: format_properties(settings).rstrip("\n"),  # where a Secret is files, the last line end is lost
        NOTES: notes.text(is_retained=user.spec.deletion_policy == "Retain"),
    }
    assert texts.keys() <= set(KEYS), f"a Secret has a key that is never removed: {texts.keys() - set(KEYS)}"
    return texts


def _bootstrap(login: Login, before: str | None) -> dict[str, str]:
    """The addresses to begin with: those that are there, as long as no other came; a broker may be away for a while."""
    if before is not None and set(login.bootstrap) <= set(before.split(",")):
        return {BOOTSTRAP: before}
    return {BOOTSTRAP: ",".join(login.bootstrap)} if login.bootstrap else {}


def _quoted(text: str) -> str:
    """Text as JAAS reads it."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r")
    return f'"{escaped}"'


def seen_secret(user: KafkaUser, texts: Texts, login: Login | None, *, is_known: bool) -> SeenSecret | None:
    """The Secret that the operator has made of a user; None where it holds no password.

    Where it is not known how clients log in, what is said of that stands.
    """
    password = texts.get(PASSWORD, "")
    if not password:
        return None
    notes = Notes.parsed(texts.get(NOTES))
    if notes is None:  # another hand has taken the notes away: the password stays, and gets others
        return SeenSecret("", ITERATIONS_MIN, password, is_current=False)
    wanted = texts_of(user, password, notes, login if is_known else _login_in(texts), texts)
    is_current = all(texts.get(key) == text for key, text in wanted.items())
    seen = SeenSecret(version_of(password, notes), notes.iterations, password, notes.made, notes.rotate)
    return replace(seen, is_current=is_current)


def _login_in(texts: Texts) -> Login | None:
    """The place where clients log in, by the Secret itself."""
    if PROTOCOL not in texts:
        return None
    return Login(texts[PROTOCOL], tuple(texts[BOOTSTRAP].split(",")) if texts.get(BOOTSTRAP) else ())


def secret_of_others(password: str, version: str) -> SeenSecret:
    """The Secret of another owner with the password of a user. `version` changes with it and tells nothing of it."""
    digest = hmac.digest(b"kavka iterations", version.encode(), "sha256")
    spread = OWN_ITERATIONS_MAX - OWN_ITERATIONS_MIN + 1
    iterations = OWN_ITERATIONS_MIN + int.from_bytes(digest[:4]) % spread
    return SeenSecret(version, iterations, password, is_ours=False)
