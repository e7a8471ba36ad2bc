"""`kavka down`: stops a cluster that `kavka up` runs."""

import json
from argparse import ArgumentParser, Namespace

from kavka_cli.commands.up import tell_what_is_left
from kavka_cli.local_clusters import (
    add_local_namespace,
    add_state_directory,
    is_running,
    only_known,
    state_directory,
    the_cluster,
)
from kavka_cli.local_resources import full_name
from kavka_cli.output import CommandError, complain, say
from kavka_cli.resource_tables import nodes_overview
from kavka_operator.api.cluster import KafkaCluster
from kavka_operator.platform.local import processes
from kavka_operator.platform.local.files import read_text
from kavka_operator.platform.local.layout import Layout
from kavka_operator.platform.local.removal import remove

HELP = "Stop a cluster that `kavka up` runs. Its records stay, but with --volumes."
DOWN_SECONDS_MAX = 45.0


def add_options(parser: ArgumentParser) -> None:
    """Add the options of `kavka down`."""
    add_state_directory(parser)
    parser.add_argument("cluster", nargs="?", help="The cluster; not needed where only one runs, or only one is known.")
    add_local_namespace(parser)
    words = "Remove the cluster with its records, whether it runs or not."
    parser.add_argument("--volumes", "-v", action="store_true", help=words)


def run(options: Namespace) -> int:
    """Stop a cluster; the exit code."""
    try:
        state = state_directory(options.state_dir)
        name = only_known(state, options.namespace) if options.cluster is None else options.cluster
        layout = the_cluster(state, options.namespace, name)
        was_running = is_running(layout)
        if was_running:
            _stop(layout)
        if options.volumes:
            tell_what_is_left(remove(layout))
    except CommandError as error:
        return complain(error)
    name = full_name(KafkaCluster.kind_name, layout.cluster)
    if not layout.resources.exists():
        say(f"{name} stopped and removed" if was_running else f"{name} removed")
    elif was_running:
        say(f"{name} stopped\n\n{nodes_overview(layout)}")
    else:
        say(f"{name} is not running")
    return 0


def _stop(layout: Layout) -> None:
    """End the `kavka up` of a cluster, and its nodes with it. Raises CommandError."""
    pid = int(json.loads(read_text(layout.supervisor) or '{"pid": 0}')["pid"])
    if not pid or not processes.stop_known(pid, ["up"], DOWN_SECONDS_MAX):
        raise CommandError(f"pid {pid}, which {layout.supervisor} names, is not `kavka up`; nothing was stopped")
