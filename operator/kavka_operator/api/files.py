"""Resource files: YAML with one or more documents, checked as a whole before any of it is applied.

Every fault names file, line, resource, field and what to write instead; all faults of a file are reported at once.
Nothing of a set of files is used if anything in it is wrong, so that a cluster never ends up with half a file.
"""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from kavka_operator.api import API_VERSION
from kavka_operator.api.cluster import KafkaCluster
from kavka_operator.api.error_messages import nearest, shown
from kavka_operator.api.kinds import KINDS, AnyResource, Key, Managed, cluster_key, key_of
from kavka_operator.api.quota import ClientQuota, entity_of
from kavka_operator.api.security import protocols_of
from kavka_operator.api.settings import broker_faults, topic_faults
from kavka_operator.api.topic import Topic
from kavka_operator.api.user import KafkaUser
from kavka_operator.api.validation_errors import InvalidError
from kavka_operator.api.yaml_lines import Document, Where, YamlError, documents

FILE_SIZE_MAX = 4 * 1024 * 1024
RESOURCES_MAX = 10_000
SUFFIXES = (".yaml", ".yml", ".json")
STANDARD_INPUT = Path("-")


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault in a resource file, and where it is; of the file as a whole it has no line."""

    file: str
    line: int | None
    subject: str
    field: str
    message: str

    def __str__(self) -> str:
        parts = [self.file if self.line is None else f"{self.file}:{self.line}", self.subject, self.field, self.message]
        return ": ".join(part for part in parts if part)


class BadResourcesError(Exception):
    """The resource files have faults, and nothing of them was used."""

    def __init__(self, faults: Iterable[Fault]) -> None:
        self.faults = tuple(faults)
        super().__init__("\n".join(map(str, self.faults)))


@dataclass(frozen=True, slots=True)
class Declared:
    """A resource as a person wrote it: the model, and the document that it was read from."""

    resource: AnyResource
    file: str
    document: Document

    def fault(self, path: Where, message: str) -> Fault:
        """A fault of this resource at `path`."""
        line = self.document.line(path)
        return Fault(self.file, line, self.resource.identity, _field(path), message)

    @property
    def key(self) -> Key:
        """Kind, namespace and name: a set of files may hold each key once."""
        return key_of(self.resource)


def load(
    paths: Iterable[Path],
    known: Mapping[Key, AnyResource] | None = None,
    *,
    is_change: bool = True,
) -> list[Declared]:
    """The resources in `paths`, clusters first. `known` are those that exist already. Raises BadResourcesError.

    A directory stands for its resource files, `-` for standard input. Without `is_change` nothing is compared with what
    exists: to delete a resource, any file that once declared it will do.
    """
    found = (result for given in paths for path in _files(given) for result in _declared_in(_documents(path)))
    return _checked(found, known or {}, is_change=is_change)


def load_text(name: str, text: str, known: Mapping[Key, AnyResource]) -> list[Declared]:
    """The resources in a text, which messages call `name`, as `load` gives those of files. Raises BadResourcesError."""
    return _checked(_declared_in(_documents_of(name, lambda: text)), known, is_change=True)


def _checked(
    results: Iterable["Declared | Fault"], known: Mapping[Key, AnyResource], *, is_change: bool
) -> list[Declared]:
    """The resources, clusters first. Raises BadResourcesError with the faults of all."""
    declared: list[Declared] = []
    faults: list[Fault] = []
    for result in results:
        if isinstance(result, Declared):
            declared.append(result)
        else:
            faults.append(result)
    faults += _between(declared, known, complete=not faults)
    if is_change:
        faults += _changed(declared, known)
    if faults:
        raise BadResourcesError(faults)
    order = list(KINDS)
    return sorted(declared, key=lambda entry: order.index(entry.resource.kind))


def _files(given: Path) -> list[Path]:
    """The resource files that a name on the command line stands for."""
    return sorted(path for path in given.iterdir() if path.suffix in SUFFIXES) if given.is_dir() else [given]


def _text(path: Path) -> str:
    """The text of a file; of a large one only the beginning."""
    if path == STANDARD_INPUT:
        return sys.stdin.read(FILE_SIZE_MAX + 1)
    with path.open(encoding="utf-8") as file:
        return file.read(FILE_SIZE_MAX + 1)


def written(paths: Iterable[Path]) -> list[tuple[str, Document]]:
    """The documents in `paths` that are maps, as they stand there, each with its file. Raises BadResourcesError."""
    found = [result for given in paths for path in _files(given) for result in _documents(path)]
    faults = [result for result in found if isinstance(result, Fault)]
    pairs = [result for result in found if not isinstance(result, Fault)]
    faults += [_no_resource(*pair) for pair in pairs if not isinstance(pair[1].value, dict)]
    if faults:
        raise BadResourcesError(faults)
    return pairs


def _declared_in(results: Iterable[tuple[str, Document] | Fault]) -> Iterator[Declared | Fault]:
    for result in results:
        if isinstance(result, Fault):
            yield result
        else:
            yield from _declared(*result)


def _documents(path: Path) -> Iterator[tuple[str, Document] | Fault]:
    """The documents of a file, each with the name of the file."""
    return _documents_of("standard input" if path == STANDARD_INPUT else str(path), partial(_text, path))


def _documents_of(name: str, read: Callable[[], str]) -> Iterator[tuple[str, Document] | Fault]:
    """The documents of a text, each with the name of its file; `read` gives the text."""
    try:
        text = read()
        if len(text) > FILE_SIZE_MAX:
            yield Fault(name, 1, "", "", f"is larger than {FILE_SIZE_MAX} bytes; split it")
            return
        found = [item for document in documents(text) for item in document.items()]
    except OSError as error:
        yield Fault(name, None, "", "", f"cannot be read: {(error.strerror or str(error)).lower()}")
    except (UnicodeDecodeError, UnicodeEncodeError) as error:
        yield Fault(name, 1, "", "", f"is not UTF-8 text: {error.reason}")
    except YamlError as error:
        yield Fault(name, error.line, "", "", error.message)
    else:
        if not found:
            yield Fault(name, 1, "", "", "holds no resource")
        yield from ((name, document) for document in found[:RESOURCES_MAX])


def _no_resource(file: str, document: Document) -> Fault:
    words = f"{shown(document.value)} is not a resource; write apiVersion, kind, metadata, spec"
    return Fault(file, document.line(()), "", "", words)


def _declared(file: str, document: Document) -> Iterator[Declared | Fault]:
    value = document.value
    if not isinstance(value, dict):
        yield _no_resource(file, document)
        return
    kind, name = value.get("kind"), _name(value)
    noun = kind if isinstance(kind, str) else "resource"
    subject = f'{noun} "{name}"' if name else noun
    model = KINDS.get(kind) if isinstance(kind, str) else None
    if model is None:
        yield Fault(file, document.line(("kind",)), subject, "kind", _no_kind(kind))
        return
    if value.get("apiVersion") != API_VERSION:
        yield Fault(file, document.line(("apiVersion",)), subject, "apiVersion", _no_version(value.get("apiVersion")))
        return
    wanted = {key: field for key, field in value.items() if key != "status"}
    try:
        yield Declared(model.decode(wanted), file, document)
    except InvalidError as error:
        for path, message in error.faults:
            yield Fault(file, document.line(path), subject, _field(path), message)


def _name(value: dict[str, Any]) -> str:
    metadata = value.get("metadata")
    return str(metadata.get("name", "")) if isinstance(metadata, dict) else ""


def _no_kind(kind: object) -> str:
    if kind is None:
        return f"is missing; write one of {', '.join(KINDS)}"
    meant = nearest(str(kind), list(KINDS))
    fix = f'did you mean "{meant}"?' if meant else f"write one of {', '.join(KINDS)}"
    return f"there is no kind {shown(kind)}; {fix}"


def _no_version(version: object) -> str:
    if version is None:
        return f"is missing; write {API_VERSION}"
    return f"{shown(version)} is not known; write {API_VERSION}"


def _between(declared: list[Declared], known: Mapping[Key, AnyResource], *, complete: bool) -> list[Fault]:
    """Faults that only show when resources are seen together."""
    faults = [*_twice(declared), *_same_thing(declared), *_settings(declared)]
    clusters = {key for key in (*known, *(entry.key for entry in declared)) if key[0] == "KafkaCluster"}
    # A cluster that was refused is not missing: its own fault is enough.
    return faults + (list(_nowhere(declared, clusters)) if complete else [])


def _twice(declared: list[Declared]) -> Iterator[Fault]:
    first: dict[Key, Declared] = {}
    for entry in declared:
        if (before := first.setdefault(entry.key, entry)) is not entry:
            yield entry.fault(
                ("metadata", "name"), f"stands already in {_place(before, ('metadata', 'name'))}; keep one"
            )


def _same_thing(declared: list[Declared]) -> Iterator[Fault]:
    """Two resources of different names that claim one topic or one entity."""
    first: dict[object, Declared] = {}
    for entry in declared:
        claim, path = _claim(entry.resource)
        if claim is None:
            continue
        before = first.setdefault(claim, entry)
        if before is not entry and before.key != entry.key:
            what = f"the quota of {claim[-1]}" if claim[0] == "quota" else f'{claim[0]} "{claim[-1]}"'
            yield entry.fault(
                path,
                f"{what} is declared already by {before.resource.identity} in {_place(before, path)}; keep one",
            )


def _claim(resource: AnyResource) -> tuple[tuple[object, ...] | None, Where]:
    match resource:
        case Topic(spec=spec):
            path = ("spec", "topicName") if spec.topic_name else ("metadata", "name")
            return ("topic", *cluster_key(resource), resource.topic_name), path
        case ClientQuota(spec=spec):
            return ("quota", *cluster_key(resource), entity_of(spec.entity)), ("spec", "entity")
        case KafkaUser(spec=spec):
            path = ("spec", "userName") if spec.user_name else ("metadata", "name")
            return ("user", *cluster_key(resource), resource.user_name), path
        case _:
            return None, ()


def _changed(declared: list[Declared], known: Mapping[Key, AnyResource]) -> Iterator[Fault]:
    """Changes to what exists that no resource may make."""
    for entry in declared:
        if (old := known.get(entry.key)) is None:
            continue
        for broken in entry.resource.spec.forbidden_changes(old.spec):  # type: ignore[arg-type]
            yield entry.fault(("spec", *broken.path.split(".")), broken.message)
        if isinstance(entry.resource, Topic):  # of a KafkaCluster's volumes the platform knows more than the status
            for broken in entry.resource.forbidden_changes(old):  # type: ignore[arg-type]
                yield entry.fault(tuple(broken.path.split(".")), broken.message)


def _settings(declared: list[Declared]) -> Iterator[Fault]:
    """Settings that Kafka does not know or cannot take."""
    for entry in declared:
        match entry.resource:
            case KafkaCluster(spec=spec):
                found = broker_faults(spec.config, protocols_of(spec), is_secured=spec.is_secured)
            case Topic(spec=spec):
                found = topic_faults(spec.config)
            case _:
                continue
        yield from (entry.fault(("spec", "config", name), words) for name, words in found)


def _nowhere(declared: list[Declared], clusters: set[Key]) -> Iterator[Fault]:
    for entry in declared:
        if not isinstance(entry.resource, Managed):
            continue
        wanted = cluster_key(entry.resource)
        if wanted in clusters:
            continue
        _, namespace, cluster = wanted
        names = [key[2] for key in clusters if key[1] == namespace]
        meant = nearest(cluster, names)
        fix = f'did you mean "{meant}"?' if meant else "add it to the file or name one that exists"
        yield entry.fault(
            ("spec", "clusterRef", "name"), f'there is no KafkaCluster "{cluster}" in namespace "{namespace}"; {fix}'
        )


def _place(declared: Declared, path: Where) -> str:
    return f"{declared.file}:{declared.document.line(path)}"


def _field(path: Where) -> str:
    words = ""
    for part in path:
        words += f"[{part}]" if isinstance(part, int) else (f".{part}" if words else part)
    return words
