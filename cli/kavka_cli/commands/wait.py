"""`kavka wait`: until resources are as they should be, exist, or are gone.

As kubectl wait: exit code 0 once all of them are so, 1 when the time is over; then each resource that is not so is
named with the reason and the message of its condition. A condition counts only if it is of the newest generation.
"""

from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic, sleep

from kavka_cli.duration import parse_duration
from kavka_cli.local_clusters import add_local_namespace, add_state_directory, is_running, state_directory
from kavka_cli.local_resources import Document, found_documents, full_name, known_resources
from kavka_cli.output import CommandError, complain, say
from kavka_cli.resource_files import add_files
from kavka_cli.resource_names import add_resource_names, parse_names
from kavka_cli.selector import add_selector, parse_selector
from kavka_cli.stopped_status import not_running
from kavka_operator.api.files import BadResourcesError, load
from kavka_operator.api.kinds import Key
from kavka_operator.api.printer_columns import find
from kavka_operator.platform.local.layout import Layout, clusters
from kavka_operator.platform.local.store import Store

HELP = "Wait until resources are as they should be, exist, or are gone."
POLL_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Goal:
    """A goal of `kavka wait`: `lacks` says what a resource still lacks, in words; None once it is met."""

    lacks: Callable[[Document | None], str | None]
    of_the_absent: bool = False  # it can be met by, or before, a resource that does not exist


def parse_goal(text: str) -> Goal:
    """The goal that `--for` names. Raises CommandError."""
    word, _, rest = text.partition("=")
    match word.lower(), rest:
        case "delete", "":
            return Goal(lambda document: None if document is None else "it is still there", of_the_absent=True)
        case "create", "":
            return Goal(lambda document: "it does not exist" if document is None else None, of_the_absent=True)
        case "condition", rest if rest:
            name, _, value = rest.partition("=")
            return Goal(lambda document: _lacks_condition(document, name, value or "True"))
        case "jsonpath", rest if "=" in rest:
            path, _, value = rest.rpartition("=")
            return Goal(lambda document: _lacks_value(document, path.strip("{}'\""), value))
    raise CommandError(
        f'"{text}" is nothing to wait for; write condition=NAME[=VALUE], jsonpath={{PATH}}=VALUE, create or delete'
    )


def add_options(parser: ArgumentParser) -> None:
    """Add the options of `kavka wait`."""
    add_state_directory(parser)
    add_resource_names(parser)
    add_files(parser)
    goals = "condition=NAME[=VALUE], jsonpath={PATH}=VALUE, create or delete."
    parser.add_argument("--for", dest="goal", required=True, metavar="GOAL", help=goals)
    parser.add_argument("--timeout", default="30s", metavar="TIME", help="30s, 5m, 1h30m; 0 looks once (%(default)s).")
    parser.add_argument("--all", action="store_true", help="Every resource of the kinds.")
    add_selector(parser)
    add_local_namespace(parser)


def run(options: Namespace, pause: Callable[[float], object] = sleep) -> int:
    """Wait until every resource is as it should be; the exit code. `pause` takes the seconds between two looks."""
    state = state_directory(options.state_dir)
    try:
        goal, seconds = parse_goal(options.goal), parse_duration(options.timeout)
        if options.filename:
            keys = [declared.key for declared in load(options.filename, known_resources(state), is_change=False)]
        else:
            keys = _named(options, goal, state)
    except (BadResourcesError, CommandError) as error:
        return complain(error)
    unmet = _Wait(state, goal, keys, pause).until(monotonic() + seconds)
    return max([0, *(complain(CommandError(_timed_out(key, lack))) for key, lack in unmet.items())])


def _named(options: Namespace, goal: Goal, state: Path) -> list[Key]:
    """The keys of the resources that the words name. Raises CommandError."""
    named = parse_names(options.words)
    names = [(kind, name) for kind, name in named if name is not None]
    if len(names) == len(named) and goal.of_the_absent:
        return [(kind, options.namespace, name) for kind, name in names]
    if not (names or options.all or options.selector):
        raise CommandError("name what to wait for: kavka wait KIND/NAME --for=..., or add --all, -l or -f")
    return list(found_documents(named, state, options.namespace, parse_selector(options.selector)))


@dataclass(slots=True)
class _Wait:
    """The resources that do not meet the goal yet."""

    state: Path
    goal: Goal
    keys: list[Key]
    pause: Callable[[float], object]
    _stores: dict[Layout, Store] = field(default_factory=dict)

    def until(self, deadline: float) -> dict[Key, str]:
        """Wait, and print each resource that meets the goal; what the others lack when the time is over."""
        lacking = dict.fromkeys(self.keys, "")
        while True:
            for key in list(lacking):
                lack = self.goal.lacks(self._document(key))
                if lack is None:
                    del lacking[key]
                    say(f"{full_name(key[0], key[2])} condition met")
                else:
                    lacking[key] = lack
            if not lacking or monotonic() >= deadline:
                return lacking
            self.pause(POLL_SECONDS)

    def _document(self, key: Key) -> Document | None:
        for layout in clusters(self.state):
            document = self._stores.setdefault(layout, Store(layout)).document(key)
            if document is not None:
                runs = is_running(layout)
                return document if runs else not_running(document, layout.cluster, datetime.now(UTC))
        return None


def _timed_out(key: Key, lack: str) -> str:
    return f"timed out waiting for the condition on {full_name(key[0], key[2])}: {lack}"


def _lacks_condition(document: Document | None, name: str, value: str) -> str | None:
    if document is None:
        return "it is gone"
    status = document.get("status", {})
    conditions = [
        condition for condition in status.get("conditions", ()) if str(condition.get("type")).lower() == name.lower()
    ]
    if status.get("observedGeneration") != document["metadata"].get("generation"):
        return "not looked at yet"
    if not conditions:
        return f"it has no condition {name}"
    told = conditions[0]
    if str(told["status"]).lower() == value.lower():
        return None
    return f"{told['type']} is {told['status']}: {told['reason']}: {told['message']}"


def _lacks_value(document: Document | None, path: str, value: str) -> str | None:
    if document is None:
        return "it is gone"
    found = find(path, document)
    if found is not None and _text(found) == value:
        return None
    return f"{path} is {'not there' if found is None else _text(found)}"


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
