"""`kavka approve`: lets a roll begin that waits for approval."""

from argparse import ArgumentParser, Namespace
from collections.abc import Mapping

from kavka_cli.cluster_annotations import add_cluster, annotate_cluster
from kavka_cli.local_resources import Document
from kavka_cli.output import CommandError, say
from kavka_cli.resource_store import add_store
from kavka_operator.api.stored_resources import part
from kavka_operator.reconcile.rollout.roll import APPROVE

HELP = "Approve the roll that waits for it, by its plan's hash."


def add_options(parser: ArgumentParser) -> None:
    """Add the options of `kavka approve`."""
    add_cluster(parser)
    parser.add_argument("--plan", metavar="HASH", help="Only if it is still this plan.")
    add_store(parser)


def run(options: Namespace) -> int:
    """Approve the roll that waits, or only the given plan; the exit code."""
    return annotate_cluster(options, lambda document: _approval(document, options.plan))


def _approval(document: Document, plan: str | None) -> tuple[Mapping[str, str | None], str]:
    """The approval of the plan that the status names: a plan is its settings, so a later change needs its own."""
    name, status = document["metadata"]["name"], part(document, "status")
    rollout = part(status, "rollout")
    waiting = str(rollout.get("plan") or "")
    if not waiting:
        raise CommandError(f'KafkaCluster "{name}": no roll is on, so there is nothing to approve')
    if plan is not None and plan != waiting:
        raise CommandError(f'KafkaCluster "{name}": the roll that is on is {waiting}, not {plan}; see `kavka describe`')
    if risks := rollout.get("atRisk"):
        say(f"at risk while nodes restart: {', '.join(map(str, risks))}")
    return {APPROVE: waiting}, f"approved {waiting}"
