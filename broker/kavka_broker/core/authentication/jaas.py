"""The text of `sasl.jaas.config`: one login module with its options, as Java's JAAS files have them.

    org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="alice-secret" user_bob="x";

An option's value is a word or stands in quotes, in which a backslash takes the next character as it is (JaasConfig,
which reads it with Java's StreamTokenizer). What is wrong is said without the text, as it holds passwords.
"""

import re
from typing import Final, NamedTuple

FLAGS: Final = ("required", "requisite", "sufficient", "optional")
TEXT_CHARACTERS_MAX: Final = 1 << 20
_TOKEN: Final = re.compile(r'\s*(?:"((?:[^"\\\n]|\\.)*)"|([A-Za-z0-9_$.\-]+)|([=;]))')
_ESCAPED: Final = re.compile(r"\\(.)")


class JaasError(ValueError):
    """A text that is not one login module; the message says what is wrong, without the text."""


class LoginModule(NamedTuple):
    """A login module, by the name of its class, and its options."""

    name: str
    options: dict[str, str]


def parse_jaas(text: str) -> LoginModule:
    """The one login module of a text. Raises JaasError."""
    tokens = _tokens(text)
    if len(tokens) < 3 or tokens[-1] != ";":
        raise JaasError('is no login module; write MODULE required NAME="VALUE" ...; with a semicolon at its end')
    name, flag, *rest = tokens[:-1]
    if flag.lower() not in FLAGS:
        raise JaasError(f"the login module {name} has no control flag; write required behind its name")
    if len(rest) % 3 or ";" in rest[0::3] or any(sign != "=" for sign in rest[1::3]):
        raise JaasError(f'the options of {name} cannot be read; write each as NAME="VALUE", and one module alone')
    return LoginModule(name, dict(zip(rest[0::3], rest[2::3], strict=True)))


def _tokens(text: str) -> list[str]:
    if len(text) > TEXT_CHARACTERS_MAX:
        raise JaasError(f"is longer than {TEXT_CHARACTERS_MAX} characters")
    tokens, place, end = list[str](), 0, len(text.rstrip())
    while place < end:
        found = _TOKEN.match(text, place)
        if found is None:
            raise JaasError(f"cannot be read from its character {place + 1} on")
        quoted, word, sign = found.groups()
        tokens.append(_ESCAPED.sub(r"\1", quoted) if quoted is not None else word or sign)
        place = found.end()
    return tokens
