"""`kavka doctor`: what is wrong with a Kafka, and what to do about it. It only reads."""

import json
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Sequence

from kavka_cli.local_clusters import add_state_directory
from kavka_cli.output import CommandError, complain, say
from kavka_cli.target import Target, add_target, find_target, target_options
from kavka_operator.doctor.evidence import Examined, Finding, Severity
from kavka_operator.doctor.rules import judge
from kavka_operator.kafka.admin import AdminError
from kavka_operator.kafka.inspection import Examiner

HELP = "Say what is wrong with a cluster, with any Kafka too; it only reads. Exit code 1 with findings, 2 on errors."
ERROR = 2


def add_options(parser: ArgumentParser) -> None:
    """Add the options of `kavka doctor`."""
    add_state_directory(parser)
    add_target(parser, has_pages=False)
    parser.add_argument("--output", "-o", choices=("text", "json"), default="text", help="How to print.")


def run(options: Namespace) -> int:
    """Print the findings; the exit code: 0 without any but notes, 1 with some, 2 where nothing could be asked."""
    try:
        seen = _examined(find_target(target_options(options)))
    except (CommandError, AdminError) as error:
        complain(error)
        return ERROR
    found = judge(seen)
    say(as_json(found, seen) if options.output == "json" else "\n".join(as_text(found, seen)))
    return exit_code(found)


def exit_code(found: Sequence[Finding]) -> int:
    """The exit code that findings give."""
    return int(any(finding.severity > Severity.NOTE for finding in found))


def as_text(found: Sequence[Finding], seen: Examined) -> Iterator[str]:
    """The findings as a person reads them."""
    for finding in found:
        yield f"{finding.severity.name:9} {finding.what} [{finding.code}]"
        yield f"{'':9} {finding.evidence}"
        yield f"{'':9} fix: {finding.fix}"
    for words in seen.untold:
        yield f"NOT TOLD  {words}"
    counts = ", ".join(
        f"{sum(finding.severity is kind for finding in found)} {kind.name.lower()}" for kind in reversed(Severity)
    )
    yield f"{len(seen.brokers)} brokers, {len(seen.by_topic())} topics, {len(seen.partitions)} partitions: {counts}"


def as_json(found: Sequence[Finding], seen: Examined) -> str:
    """The findings as programs read them."""
    lines = [
        {
            "severity": finding.severity.name.lower(),
            "code": finding.code,
            "what": finding.what,
            "evidence": finding.evidence,
            "fix": finding.fix,
        }
        for finding in found
    ]
    return json.dumps({"findings": lines, "untold": list(seen.untold)}, indent=2)


def _examined(found: Target) -> Examined:
    client = Examiner(found.bootstrap, found.security)
    try:
        return client.examine()
    finally:
        client.close()
