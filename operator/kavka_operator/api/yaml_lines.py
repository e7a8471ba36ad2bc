"""YAML that remembers where each value stood, so that an error can name the line.

`yaml.safe_load` keeps no positions and lets the last of two equal keys win. This reads the node tree instead: it makes
the plain values itself and notes the line of every path. A key that stands twice is an error.
"""

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

import yaml
from yaml.reader import ReaderError

Where = tuple[str | int, ...]

DEPTH_MAX = 64
ALIASED_NODES_MAX = 100_000
"""Nodes that aliases may repeat in a document: a few hundred bytes of aliases to aliases would make billions."""


class _Slow(yaml.SafeLoader):
    """PyYAML's parser in Python."""


class _Fast(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """PyYAML's parser in C, where it is there."""


LOADERS: Final[tuple[type[yaml.SafeLoader], type[yaml.SafeLoader]]] = (_Fast, _Slow)
for _loader in LOADERS:  # 5e9 and 5.0E9 are numbers for kubectl, as for YAML 1.2; PyYAML takes them for text
    _loader.add_implicit_resolver(
        "tag:yaml.org,2002:float", re.compile(r"^[-+]?[0-9]+(\.[0-9]*)?[eE][-+]?[0-9]+$"), list("-+0123456789")
    )


class YamlError(Exception):
    """The text is not YAML that we accept; `line` counts from 1."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line
        self.message = message


@dataclass(frozen=True, slots=True)
class Document:
    """One document: its value, and the line of each path in it."""

    value: Any
    lines: dict[Where, int] = field(default_factory=dict)

    def line(self, path: Where) -> int:
        """The line of `path`, or of the nearest thing that contains it."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)

    def items(self) -> "list[Document]":
        """The documents that a `List` of `kubectl get -o yaml` holds; of any other document, itself."""
        value = self.value
        if not isinstance(value, dict) or value.get("kind") != "List" or not isinstance(value.get("items"), list):
            return [self]
        lines: dict[str | int, dict[Where, int]] = {}
        for path, line in self.lines.items():
            if path[:1] == ("items",) and len(path) > 1:
                lines.setdefault(path[1], {})[path[2:]] = line
        return [Document(item, lines.get(index, {})) for index, item in enumerate(value["items"])]


def documents(text: str) -> Iterator[Document]:
    """The documents of a YAML text, without empty ones. Raises YamlError.

    PyYAML's C parser, where it is there, is nine times as fast; a text that it refuses is read again by the Python
    parser, for its messages.
    """
    fast = LOADERS[0]
    with suppress(yaml.YAMLError):
        _refuse_depth(fast, text)
        return iter(list(_documents(fast(text))))
    return _worded(text)


def _refuse_depth(loader: type[yaml.SafeLoader], text: str) -> None:
    """Raises YamlError where a text is nested deeper than the loaders, which are recursive, have a stack for."""
    depth = 0
    for event in yaml.parse(text, Loader=loader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > DEPTH_MAX:
            line = event.start_mark.line + 1 if event.start_mark else 1
            raise YamlError(line, f"is nested more than {DEPTH_MAX} deep")


def _worded(text: str) -> Iterator[Document]:
    """The documents. Raises YamlError, with words for a person."""
    with suppress(yaml.YAMLError):
        _refuse_depth(LOADERS[-1], text)  # the fast one may have ended before
    try:
        yield from _documents(LOADERS[-1](text))
    except ReaderError as error:
        line, code = text.count("\n", 0, error.position) + 1, ord(text[error.position])
        raise YamlError(line, f"is not YAML: it holds the control character U+{code:04X}; take it out") from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise YamlError(mark.line + 1 if mark else 1, f"is not YAML: {error.problem or error.context}") from None
    except yaml.YAMLError as error:
        raise YamlError(1, f"is not YAML: {error}") from None


def _documents(loader: yaml.SafeLoader) -> Iterator[Document]:
    try:
        while loader.check_node():
            node = loader.get_node()
            assert node is not None
            reading = _Reading(loader)
            value = reading.value(node, ())
            if value is not None:
                yield Document(value, reading.lines)
    finally:
        loader.dispose()


class _Reading:
    """Makes the value of one document, and notes the line of each path."""

    def __init__(self, loader: yaml.SafeLoader) -> None:
        self.lines: dict[Where, int] = {}
        self._loader = loader
        self._seen: set[int] = set()
        self._aliased_count = 0

    def value(self, node: yaml.Node, path: Where) -> Any:
        """The value of a node. Raises YamlError."""
        line = node.start_mark.line + 1
        if len(path) > DEPTH_MAX:  # by aliases, which are no nesting of the text
            raise YamlError(line, f"is nested more than {DEPTH_MAX} deep")
        self._count(node, line)
        self.lines.setdefault(path, line)
        match node:
            case yaml.MappingNode():
                return self._mapping(node, path)
            case yaml.SequenceNode():
                return [self.value(item, (*path, index)) for index, item in enumerate(node.value)]
            case _:
                return self._scalar(node)

    def _count(self, node: yaml.Node, line: int) -> None:
        """Count a node that was there before, which only an alias repeats. Raises YamlError."""
        if id(node) not in self._seen:
            self._seen.add(id(node))
            return
        self._aliased_count += 1
        if self._aliased_count > ALIASED_NODES_MAX:
            words = f"aliases repeat this and others, more than {ALIASED_NODES_MAX} values in all; write them out"
            raise YamlError(line, words)

    def _mapping(self, node: yaml.MappingNode, path: Where) -> dict[str, Any]:
        """The map of a node. Raises YamlError."""
        result: dict[str, Any] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            if not isinstance(key_node, yaml.ScalarNode):
                raise YamlError(line, "a key is a map or a list; write text")
            key = self._scalar(key_node)
            if not isinstance(key, str):
                raise YamlError(line, f"the key {key!r} is not text; write it in quotes")
            if key in result:
                first, name = self.lines[(*path, key)], ".".join(map(str, (*path, key)))
                raise YamlError(line, f"{name} stands twice, first in line {first}; keep one")
            self.lines[(*path, key)] = line
            result[key] = self.value(value_node, (*path, key))
        return result

    def _scalar(self, node: yaml.Node) -> Any:
        """The scalar of a node. Raises YamlError."""
        try:
            return self._loader.construct_object(node, deep=True)
        except ValueError as error:
            raise YamlError(node.start_mark.line + 1, f"is not a value: {error}; write text in quotes") from None
