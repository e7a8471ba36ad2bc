"""The user that a client's certificate stands for: the name of its subject, through the rules of KIP-371."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

_RULE: Final = re.compile(r"\s*(?:(DEFAULT)|RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?))\s*(?:,|$)")
_GROUP: Final = re.compile(r"\$(\d)")


class RuleError(ValueError):
    """A text that is no list of rules; the message says where."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule: a subject that matches `pattern` as a whole becomes `replacement`, in small or large letters if asked."""

    pattern: "re.Pattern[str]"
    replacement: str
    letters: str = ""

    def user(self, name: str) -> str | None:
        """The user for a subject; None where the rule is not about it."""
        if self.pattern.fullmatch(name) is None:
            return None
        found = self.pattern.sub(self.replacement, name, count=1)
        return {"L": found.lower(), "U": found.upper()}.get(self.letters, found)


DEFAULT_RULE: Final = Rule(re.compile(r".*", re.DOTALL), r"\g<0>")


def parse_rules(text: str) -> tuple[Rule, ...]:
    """The rules of `ssl.principal.mapping.rules`, as SslPrincipalMapper reads them. Raises RuleError."""
    rules, place = list[Rule](), 0
    while place < len(text.rstrip()):
        found = _RULE.match(text, place)
        if found is None:
            raise RuleError(
                f'"{text[place:].strip()}" is no rule; write RULE:PATTERN/REPLACEMENT/ with L or U, or DEFAULT'
            )
        rules.append(DEFAULT_RULE if found[1] else _rule(found[2], found[3], found[4]))
        place = found.end()
    return tuple(rules)


def _rule(pattern: str, replacement: str, letters: str) -> Rule:
    try:
        compiled = re.compile(pattern)
        rule = Rule(compiled, _GROUP.sub(r"\\g<\1>", replacement.replace("\\", r"\\")), letters)
        if any(int(number) > compiled.groups for number in _GROUP.findall(replacement)):
            raise RuleError(f'"{replacement}" names a group that "{pattern}" does not have')
    except re.error as error:
        raise RuleError(f'"{pattern}" is no regular expression: {error}') from None
    return rule


def user_of(name: str, rules: Sequence[Rule]) -> str | None:
    """The user for the name of a certificate's subject by the first rule that is about it; None where no rule is."""
    return next((user for rule in rules if (user := rule.user(name)) is not None), None)
