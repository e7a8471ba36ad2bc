"""The clusters of this machine: where they are kept, which of them run, and which one a command is for."""

from argparse import ArgumentParser
from pathlib import Path

from kavka_cli.output import CommandError
from kavka_operator.platform.local.files import Lock
from kavka_operator.platform.local.layout import Layout, clusters, default_state_directory


def add_state_directory(parser: ArgumentParser) -> None:
    """Add `--state-dir`."""
    words = "Where local clusters are kept. [env: KAVKA_STATE_DIR]"
    parser.add_argument("--state-dir", type=Path, metavar="DIR", help=words)


def add_local_namespace(parser: ArgumentParser) -> None:
    """Add `--namespace` of a command for local clusters alone."""
    words = "The namespace of the resources (%(default)s)."
    parser.add_argument("--namespace", "-n", default="default", metavar="NAME", help=words)


def state_directory(chosen: Path | None) -> Path:
    """The directory with all local clusters."""
    return (chosen or default_state_directory()).expanduser().absolute()


def is_running(layout: Layout) -> bool:
    """Whether a `kavka up` runs this cluster now."""
    return Lock(layout.lock).is_held_elsewhere()


def the_cluster(state: Path, namespace: str, name: str | None) -> Layout:
    """The cluster of this name, or the only one that runs. Raises CommandError."""
    known = [layout for layout in clusters(state) if layout.namespace == namespace]
    if name is not None:
        found = [layout for layout in known if layout.cluster == name]
        if not found:
            raise CommandError(f'there is no KafkaCluster "{name}" in namespace "{namespace}"' + _others(known))
        return found[0]
    running = [layout for layout in known if is_running(layout)]
    match running:
        case [only]:
            return only
        case []:
            raise CommandError(f'no cluster runs in namespace "{namespace}"; start one with `kavka up`')
        case several:
            raise CommandError(f"several clusters run; name one of {', '.join(layout.cluster for layout in several)}")


def only_known(state: Path, namespace: str) -> str | None:
    """The only cluster of a namespace, whether it runs or not; None where there is none, or there are several."""
    known = [layout.cluster for layout in clusters(state) if layout.namespace == namespace]
    return known[0] if len(known) == 1 else None


def _others(known: list[Layout]) -> str:
    return f"; there are {', '.join(layout.cluster for layout in known)}" if known else ""
