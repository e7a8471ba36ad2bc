"""The users that a new cluster begins with, as `kafka-storage format --add-scram` takes them (KIP-900).

    SCRAM-SHA-256=[name=alice,password=alice-secret]
    SCRAM-SHA-512=[name="bob",iterations=8192,salt="MWx2NHBkbnc0ZndxN25vdGN4bTB5Y3gwcTE=",saltedpassword="..."]

Without a salt one is drawn; without iterations there are 4,096. The brokers of a cluster can ask each other to let them
in only by such users, as none could be made before they have.
"""

import re
from base64 import b64decode
from collections.abc import Callable, Sequence
from typing import Final

from kavka_broker.controller.format import FormatError
from kavka_broker.core.authentication.scram import (
    ITERATIONS_MAX,
    ITERATIONS_MIN,
    MECHANISMS,
    Mechanism,
    credential_of,
    salted,
)
from kavka_broker.core.client_names import NAME_CHARACTERS_MAX
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.metadata.user_scram_credential_record import UserScramCredentialRecord

OPTION: Final = "--add-scram"
SALT_BYTES: Final = 24
FIELDS: Final = ("name", "password", "salt", "iterations", "saltedpassword")
_ITEM: Final = re.compile(r"([A-Za-z0-9-]+)=\[(.*)\]", re.DOTALL)


def first_users(texts: Sequence[str], random_bytes: Callable[[int], bytes]) -> list[Message]:
    """The records of the users that `--add-scram` names, each once a mechanism. Raises FormatError.

    What is wrong is said without a password.
    """
    found = dict[tuple[str, int], Message]()
    for text in texts:
        record = _record(text, random_bytes)
        if (record.name, record.mechanism) in found:
            raise FormatError(f'{OPTION}: "{record.name}" is named twice for one mechanism')
        found[record.name, record.mechanism] = record
    return list(found.values())


def _record(text: str, random_bytes: Callable[[int], bytes]) -> UserScramCredentialRecord:
    item = _ITEM.fullmatch(text.strip())
    mechanism = MECHANISMS.get(item[1]) if item is not None else None
    if item is None or mechanism is None:
        raise FormatError(f"{OPTION}: write {' or '.join(MECHANISMS)}=[name=NAME,password=PASSWORD]")
    given = _fields(item[2])
    if "name" not in given or ("password" in given) == ("saltedpassword" in given):
        raise FormatError(f"{OPTION}: give a name, and either a password or a saltedpassword")
    if len(given["name"]) > NAME_CHARACTERS_MAX:
        raise FormatError(f"{OPTION}: a name has at most {NAME_CHARACTERS_MAX} characters")
    salt, password = _salted(mechanism, given, iterations := _iterations(given), random_bytes)
    kept = credential_of(mechanism, password, salt, iterations)
    return UserScramCredentialRecord(
        given["name"], mechanism.number, kept.salt, kept.stored_key, kept.server_key, kept.iterations
    )


def _fields(text: str) -> dict[str, str]:
    """The fields of one user, by their names."""
    given = dict[str, str]()
    for part in text.split(","):
        name, equals, value = part.partition("=")
        if not equals or name.strip() not in FIELDS or name.strip() in given or not value.strip('"'):
            raise FormatError(f"{OPTION}: each field is one of {', '.join(FIELDS)}, once, with a value behind it")
        given[name.strip()] = value.strip('"')
    return given


def _iterations(given: dict[str, str]) -> int:
    text = given.get("iterations", str(ITERATIONS_MIN))
    if not (text.isascii() and text.isdigit() and ITERATIONS_MIN <= int(text) <= ITERATIONS_MAX):
        raise FormatError(f"{OPTION}: iterations are a number from {ITERATIONS_MIN} to {ITERATIONS_MAX}")
    return int(text)


def _salted(
    mechanism: Mechanism, given: dict[str, str], iterations: int, random_bytes: Callable[[int], bytes]
) -> tuple[bytes, bytes]:
    """The salt, and the password salted with it."""
    if "saltedpassword" in given and "salt" not in given:
        raise FormatError(f"{OPTION}: a saltedpassword needs the salt that it was made with")
    try:
        salt = b64decode(given["salt"], validate=True) if "salt" in given else random_bytes(SALT_BYTES)
        if "saltedpassword" in given:
            return salt, b64decode(given["saltedpassword"], validate=True)
    except ValueError:
        raise FormatError(f"{OPTION}: salt and saltedpassword are written in base64") from None
    return salt, salted(mechanism, given["password"], salt, iterations)
