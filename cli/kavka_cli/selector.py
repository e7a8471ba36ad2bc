"""Label selectors, as `kubectl get -l` takes them: `team=a,tier!=gold,stage in (prod, test),!draft`."""

import re
from argparse import ArgumentParser
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from kavka_cli.output import CommandError

Labels = Mapping[str, str]

_KEY = r"[A-Za-z0-9][\w./-]*"
_TERM = re.compile(
    rf"\s*(?:(?P<absent>!\s*)?(?P<key>{_KEY})"
    r"(?:\s*(?P<sign>==|=|!=)\s*(?P<value>[\w.-]*)|\s+(?P<word>in|notin)\s*\((?P<values>[\w.,\s-]*)\))?)\s*(?:,|$)"
)


@dataclass(frozen=True, slots=True)
class Selector:
    """The terms that the labels of a resource must fulfil, all of them."""

    terms: tuple[Callable[[Labels], bool], ...] = ()

    def takes(self, labels: Labels) -> bool:
        """Whether the labels fulfil every term."""
        return all(term(labels) for term in self.terms)


EVERYTHING = Selector()


def add_selector(parser: ArgumentParser) -> None:
    """Add `--selector`."""
    words = "Only with these labels: team=a,tier!=gold,'stage in (a, b)',!old."
    parser.add_argument("--selector", "-l", default="", metavar="LABELS", help=words)


def parse_selector(text: str) -> Selector:
    """The selector of a text. Raises CommandError."""
    terms, position = [], 0
    while position < len(text):
        found = _TERM.match(text, position)
        if found is None or (found["absent"] and (found["sign"] or found["word"])):
            raise CommandError(
                f'"{text}" is no selector; write for example -l team=a,tier!=gold or -l "stage in (prod, test)"'
            )
        terms.append(_term(found))
        position = found.end()
    return Selector(tuple(terms))


def _term(found: "re.Match[str]") -> Callable[[Labels], bool]:
    """One term of a selector; as in Kubernetes, a resource without the label is unequal to every value."""
    key, sign, word = found["key"], found["sign"], found["word"]
    if found["absent"]:
        return lambda labels: key not in labels
    if sign is None and word is None:
        return lambda labels: key in labels
    values = {found["value"]} if sign else {value.strip() for value in found["values"].split(",")}
    if sign == "!=" or word == "notin":
        return lambda labels: labels.get(key) not in values
    return lambda labels: labels.get(key) in values
