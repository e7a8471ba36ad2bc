"""Names the files in which a local cluster keeps its resources: `topic.orders.yaml`, or `topic.orders@teams.yaml`.

A namespace that is not the cluster's own stands in the name. A name is legible whatever is in its file.
"""

from dataclasses import dataclass
from typing import Final

from kavka_operator.api.kinds import KINDS, Key
from kavka_operator.platform.local.yaml_directory import SUFFIX

KINDS_BY_FILE: Final = {kind.lower(): kind for kind in KINDS}
NAMESPACE_MARK: Final = "@"


@dataclass(frozen=True, slots=True)
class ResourceFiles:
    """The names of files by the keys of resources, and back. `namespace` is the cluster's own."""

    namespace: str

    def name_of(self, key: Key) -> str:
        """The name of the file of a resource."""
        kind, namespace, name = key
        foreign = "" if namespace == self.namespace else f"{NAMESPACE_MARK}{namespace}"
        return f"{kind.lower()}.{name}{foreign}{SUFFIX}"

    def key_in(self, file: str) -> Key:
        """The key of the resource in a file of this name."""
        kind, _, name = file.removesuffix(SUFFIX).partition(".")
        name, _, namespace = name.partition(NAMESPACE_MARK)
        return KINDS_BY_FILE.get(kind, kind), namespace or self.namespace, name


def by_kind(file: str) -> tuple[int, str]:
    """The place of a file among others: clusters first, then by name."""
    kind = KINDS_BY_FILE.get(file.partition(".")[0], "")
    return list(KINDS).index(kind) if kind in KINDS else len(KINDS), file
