"""`kavka acls`: the access rules of a cluster, of any Kafka too. It only reads; KafkaUser resources change rules."""

import json
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping
from typing import Final

from kavka_cli.local_clusters import add_state_directory
from kavka_cli.output import CommandError, complain, note, say
from kavka_cli.target import Target, add_target, find_target, target_options
from kavka_operator.api.printer_columns import aligned
from kavka_operator.domain.access_rules import Binding
from kavka_operator.kafka.admin import AdminError
from kavka_operator.kafka.offsets_and_lag import Onlooker

HELP = "List the access rules (ACLs) of a cluster, of any Kafka too, by principal or resource; it only reads."
KINDS: Final = {"topic": "Topic", "group": "Group", "cluster": "Cluster", "transactional-id": "TransactionalId",
                "delegation-token": "DelegationToken", "user": "User"}  # fmt: skip
ANY_NAME: Final = "*"

Rules = Mapping[str, frozenset[Binding]]
Rule = tuple[str, Binding]


def add_options(parser: ArgumentParser) -> None:
    """Add the options of `kavka acls`."""
    add_state_directory(parser)
    add_target(parser, has_pages=False)
    words = "Only rules of this principal, such as User:alice; `alice` means that."
    parser.add_argument("--principal", metavar="PRINCIPAL", help=words)
    words = f"Only rules that hold for this resource, as topic/orders; kinds: {', '.join(KINDS)}."
    parser.add_argument("--resource", metavar="KIND/NAME", help=words)
    parser.add_argument("--output", "-o", choices=("table", "json"), default="table", help="Output format.")


def run(options: Namespace) -> int:
    """Print the rules; the exit code."""
    try:
        resource = None if options.resource is None else resource_of(options.resource)
        rules = _rules(find_target(target_options(options)))
    except (CommandError, AdminError) as error:
        return complain(error)
    if rules is None:
        note("this cluster has no authorizer: every client may do everything")
    chosen = list(chosen_of(rules or {}, options.principal, resource))
    if options.output == "json":
        say(json.dumps({"authorizer": rules is not None, "rules": list(documents(chosen))}, indent=2))
    elif chosen:
        say(aligned(list(rows(chosen))))
    elif rules is not None:
        note("no rules")
    return 0


def resource_of(text: str) -> tuple[str, str]:
    """Return the type and the name of a resource, in Kafka's words. Raises CommandError."""
    kind, slash, name = text.partition("/")
    if kind not in KINDS or not slash or not name:
        raise CommandError(f'"{text}" is not a resource; write KIND/NAME with a kind of {", ".join(KINDS)}')
    return KINDS[kind], name


def chosen_of(rules: Rules, principal: str | None, resource: tuple[str, str] | None) -> Iterator[Rule]:
    """Give the rules of this principal that hold for this resource, in order; None stands for all."""
    wanted = principal if principal is None or ":" in principal else f"User:{principal}"
    for name in sorted(rules):
        if wanted in (None, name):
            for rule in sorted(rules[name], key=str):
                if resource is None or holds_for(rule, *resource):
                    yield name, rule


def holds_for(rule: Binding, kind: str, name: str) -> bool:
    """Whether a rule is about this resource: by its name, by a prefix of it, or as one about all."""
    if rule.resource_type != kind:
        return False
    return name.startswith(rule.name) if rule.pattern_type == "Prefixed" else rule.name in (name, ANY_NAME)


def rows(chosen: list[Rule]) -> Iterator[list[str]]:
    """Give a line for each rule, below a head."""
    yield ["PRINCIPAL", "PERMISSION", "OPERATION", "RESOURCE", "NAME", "PATTERN", "HOST"]
    for name, rule in chosen:
        yield [
            name, rule.permission, rule.operation, rule.resource_type, rule.name, rule.pattern_type, rule.host
        ]  # fmt: skip


def documents(chosen: list[Rule]) -> Iterator[dict[str, str]]:
    """Give the rules as programs read them."""
    for name, rule in chosen:
        yield {
            "principal": name,
            "permission": rule.permission,
            "operation": rule.operation,
            "resourceType": rule.resource_type,
            "resourceName": rule.name,
            "patternType": rule.pattern_type,
            "host": rule.host,
        }


def _rules(target: Target) -> Rules | None:
    client = Onlooker(target.bootstrap, target.security)
    try:
        return client.access_rules()
    finally:
        client.close()
