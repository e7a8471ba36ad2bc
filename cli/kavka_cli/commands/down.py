"""`kavka down`: stops a cluster that `kavka up` runs."""

import json
from argparse import ArgumentParser, Namespace

from kavka_cli.local_clusters import (
    add_local_namespace,
    add_state_directory,
    is_running,
    state_directory,
    the_cluster,
)
from kavka_cli.output import CommandError, complain, say
from kavka_cli.resource_tables import nodes_overview
from kavka_operator.platform.local import processes
from kavka_operator.platform.local.files import read_text

HELP = "Stop a cluster that `kavka up` runs. Its records stay."
DOWN_SECONDS_MAX = 45.0


def add_options(parser: ArgumentParser) -> None:
    """Add the options of `kavka down`."""
    add_state_directory(parser)
    parser.add_argument("cluster", nargs="?", help="The cluster; not needed while only one runs.")
    add_local_namespace(parser)


def run(options: Namespace) -> int:
    """Stop a cluster; the exit code."""
    try:
        layout = the_cluster(state_directory(options.state_dir), options.namespace, options.cluster)
        if not is_running(layout):
            raise CommandError(f'KafkaCluster "{layout.cluster}" is not running')
        pid = int(json.loads(read_text(layout.supervisor) or '{"pid": 0}')["pid"])
        if not pid or not processes.stop_known(pid, ["up"], DOWN_SECONDS_MAX):
            raise CommandError(f"pid {pid}, which {layout.supervisor} names, is not `kavka up`; nothing was stopped")
    except CommandError as error:
        return complain(error)
    say(f"kafkacluster.kavka.dev/{layout.cluster} stopped\n\n{nodes_overview(layout)}")
    return 0
