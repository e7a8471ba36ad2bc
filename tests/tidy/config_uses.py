"""Which configs the broker's code reads, found in its text.

A broker config is read where its name stands in code: whole, as `prefix + "rest"`, or as an f-string. A topic's config
is read as the attribute of that name. A group's own config is named where it is read, and stands for the configs of
brokers behind the prefix `group.`: its value where a group has none, and its bounds. The tables that define configs do
not read them, nor do checks that only judge values.
"""

import ast
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from kavka_broker.core.config.broker import KEYS, SYNONYMS
from kavka_broker.core.config.group_table import GROUP_KEYS
from kavka_broker.core.config.topic_table import TOPIC_KEYS
from tests.tidy.tree import PYTHON, parsed, relative

BROKER = "broker/kavka_broker/"
CONFIG = f"{BROKER}core/config/"
#: Topic configs that the controller reads by name, out of what was altered: `core.metadata.decide.election_policy`.
BY_NAME = ("min.insync.replicas", "unclean.leader.election.enable")
#: Of the folder that defines configs, the files that also make something of their values.
READERS = (f"{CONFIG}broker.py", f"{CONFIG}topic.py")


@cache
def read_names() -> frozenset[str]:
    """The names of all broker configs that something reads, defaults of topics among them."""
    patterns = [pattern for path in _sources() for scope in _scopes(path) for pattern in _names(scope)]
    found = {name for name in KEYS if any(pattern.fullmatch(name) for pattern in patterns)}
    found |= {synonym for name in read_of_topics() if (synonym := TOPIC_KEYS[name].synonym) is not None}
    return frozenset(found | {coarser for name in found for coarser in SYNONYMS.get(name, ())})


@cache
def read_of_topics() -> frozenset[str]:
    """The names of all topic configs that something reads."""
    read = set(BY_NAME)
    attributes = {name.replace(".", "_"): name for name in TOPIC_KEYS}
    for path in _sources():
        for scope in _scopes(path):
            named = {node.attr for node in ast.walk(scope) if isinstance(node, ast.Attribute)}
            read |= {attributes[name] for name in named & attributes.keys()}
    return frozenset(read)


def _sources() -> Iterator[Path]:
    for path in PYTHON:
        name = relative(path)
        if name.startswith(BROKER) and (not name.startswith(CONFIG) or name in READERS):
            yield path


def _scopes(path: Path) -> list[ast.AST]:
    """What reads: the whole file, or of a file that defines configs its functions that do not only check."""
    tree = parsed(path.read_text())
    if relative(path) not in READERS:
        return [tree]
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    return [node for node in functions if not node.name.lstrip("_").startswith("check")]


def _names(scope: ast.AST) -> Iterator[re.Pattern[str]]:
    """The names of configs that stand in the code, those that are put together as patterns."""
    values = _assigned(scope)
    for node in ast.walk(scope):
        match node:
            case ast.Constant(value=str(text)) if text in KEYS:
                yield re.compile(re.escape(text))
            case ast.Constant(value=str(text)) if text in GROUP_KEYS:
                kind, _, rest = text.partition(".")
                yield re.compile(rf"group\.{kind}\.((min|max)\.)?{re.escape(rest)}")
            case ast.JoinedStr(values=parts) if sum(map(_dots, parts)) > 1:
                yield re.compile("".join(_part(part, values) for part in parts))
            case ast.Subscript(slice=ast.BinOp(left=left, op=ast.Add(), right=right)):
                yield re.compile(_part(left, values) + _part(right, values))


def _dots(part: ast.expr) -> int:
    return str(part.value).count(".") if isinstance(part, ast.Constant) else 0


def _part(node: ast.expr, values: Mapping[str, set[str]]) -> str:
    """A piece of a name: as it stands, or what its variable is given somewhere; else any one word."""
    match node:
        case ast.Constant(value=str(text)):
            return re.escape(text)
        case ast.FormattedValue(value=ast.Name(id=name)) | ast.Name(id=name) if name in values:
            return f"(?:{'|'.join(map(re.escape, sorted(values[name])))})"
    return "[a-z]+"


def _assigned(scope: ast.AST) -> dict[str, set[str]]:
    """The texts that each variable is given somewhere."""
    values: dict[str, set[str]] = {}
    for node in ast.walk(scope):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=str(text))):
                values.setdefault(name, set()).add(text)
    return values
