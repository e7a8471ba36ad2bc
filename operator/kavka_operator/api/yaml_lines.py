"""YAML that remembers where each value stood, so that an error can name the line.

`yaml.safe_load` keeps no positions and lets the last of two equal keys win. This reads the node tree instead: it makes
the plain values itself and notes the line of every path. A key that stands twice is an error.
"""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import yaml

Where = tuple[str | int, ...]

DEPTH_MAX = 64


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
        return [self._item(index, item) for index, item in enumerate(value["items"])]

    def _item(self, index: int, value: Any) -> "Document":
        where = ("items", index)
        return Document(value, {path[2:]: line for path, line in self.lines.items() if path[:2] == where})


def documents(text: str) -> Iterator[Document]:
    """The documents of a YAML text, without empty ones. Raises YamlError.

    PyYAML's C parser, where it is there, is nine times as fast; a text that it refuses is read again by the Python
    parser, for its messages.
    """
    fast = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    with suppress(yaml.YAMLError):
        _refuse_depth(fast, text)
        return iter(list(_documents(fast(text))))
    return _worded(yaml.SafeLoader(text))


def _refuse_depth(loader: type[yaml.SafeLoader], text: str) -> None:
    """Raises YamlError where a text is nested deeper than the loaders, which are recursive, have a stack for."""
    depth = 0
    for event in yaml.parse(text, Loader=loader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > DEPTH_MAX:
            line = event.start_mark.line + 1 if event.start_mark else 1
            raise YamlError(line, f"is nested more than {DEPTH_MAX} deep")


def _worded(loader: yaml.SafeLoader) -> Iterator[Document]:
    """The documents. Raises YamlError, with words for a person."""
    try:
        yield from _documents(loader)
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
            lines: dict[Where, int] = {}
            value = _value(loader, node, (), lines)
            if value is not None:
                yield Document(value, lines)
    finally:
        loader.dispose()


def _value(loader: yaml.SafeLoader, node: yaml.Node, path: Where, lines: dict[Where, int]) -> Any:
    """The value of a node; `lines` takes the line of each path. Raises YamlError."""
    line = node.start_mark.line + 1
    if len(path) > DEPTH_MAX:  # by aliases, which are no nesting of the text
        raise YamlError(line, f"is nested more than {DEPTH_MAX} deep")
    lines.setdefault(path, line)
    match node:
        case yaml.MappingNode():
            return _mapping(loader, node, path, lines)
        case yaml.SequenceNode():
            return [_value(loader, item, (*path, index), lines) for index, item in enumerate(node.value)]
        case _:
            return _scalar(loader, node)


def _mapping(loader: yaml.SafeLoader, node: yaml.MappingNode, path: Where, lines: dict[Where, int]) -> dict[str, Any]:
    """The map of a node. Raises YamlError."""
    result: dict[str, Any] = {}
    for key_node, value_node in node.value:
        key = _scalar(loader, key_node)
        line = key_node.start_mark.line + 1
        if not isinstance(key, str):
            raise YamlError(line, f"the key {key!r} is not text; write it in quotes")
        if key in result:
            first = lines[(*path, key)]
            raise YamlError(line, f"{'.'.join(map(str, (*path, key)))} stands twice, first in line {first}; keep one")
        lines[(*path, key)] = line
        result[key] = _value(loader, value_node, (*path, key), lines)
    return result


def _scalar(loader: yaml.SafeLoader, node: yaml.Node) -> Any:
    """The scalar of a node. Raises YamlError."""
    try:
        return loader.construct_object(node, deep=True)
    except ValueError as error:
        raise YamlError(node.start_mark.line + 1, f"is not a value: {error}; write text in quotes") from None
