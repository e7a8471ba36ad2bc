"""`kavka consume`: prints the records of a topic of any Kafka, as lines of JSON. It joins no group, and only reads."""

import os
import re
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from kavka_cli.local_clusters import add_state_directory
from kavka_cli.moment import moment_ms
from kavka_cli.output import CommandError, complain, note
from kavka_cli.record_lines import as_line
from kavka_cli.schema_registry.decoding import Decoder
from kavka_cli.schema_registry.lines import LineDecoding
from kavka_cli.schema_registry.registry_client import REGISTRY_VARIABLE, RegistryClient, RegistryError
from kavka_cli.target import Target, add_target, find_target, target_options
from kavka_operator.domain.moments import START
from kavka_operator.kafka.admin import AdminError
from kavka_operator.kafka.record_positions import begin_offsets, partitions_of

HELP = "Print the records of a topic, of any Kafka too, as lines of JSON; it joins no group and commits nothing."
POLL_MS: Final = 500


@dataclass(frozen=True, slots=True)
class Wanted:
    """The records that are asked for. `until_ms` is the time from which on none is wanted."""

    matches: Callable[[Any], bool]
    count_max: int | None = None
    until_ms: int | None = None


def add_options(parser: ArgumentParser) -> None:
    """Add the options of `kavka consume`."""
    add_state_directory(parser)
    add_target(parser, has_pages=False)
    parser.add_argument("--topic", "-t", required=True, metavar="TOPIC", help="The topic.")
    words = "Only this partition; may be given more than once."
    parser.add_argument("--partition", type=int, action="append", default=[], metavar="N", help=words)
    words = "Begin at: start, now, a time ago such as -5m, or a time such as 2026-11-28T19:00:00Z (%(default)s)."
    parser.add_argument("--from", dest="begin", default=START, metavar="WHEN", help=words)
    parser.add_argument("--offset", type=int, metavar="N", help="Begin at this offset of each partition.")
    words = "End at the first record of each partition from this time on; written as for --from."
    parser.add_argument("--until", metavar="WHEN", help=words)
    words = "Only records whose key or value has this regular expression somewhere."
    parser.add_argument("--grep", metavar="PATTERN", help=words)
    parser.add_argument("--max", type=int, metavar="N", help="End after so many records.")
    parser.add_argument("--follow", "-f", action="store_true", help="Go on at the end, until Ctrl-C.")
    words = "A schema registry with Confluent's API, for Avro, Protobuf and JSON Schema (or $KAVKA_REGISTRY)."
    parser.add_argument("--registry", metavar="URL", default=os.environ.get(REGISTRY_VARIABLE), help=words)
    words = "Print json, or the value alone as it is, a line each."
    parser.add_argument("--output", "-o", choices=("json", "value"), default="json", help=words)


def run(options: Namespace) -> int:
    """Print the records; the exit code."""
    try:
        begin_ms = moment_ms(options.begin)
        until_ms = moment_ms(options.until) if options.until else None
        target = find_target(target_options(options))
        registry = options.registry or target.registry
        decoding = LineDecoding(Decoder(RegistryClient(registry))) if registry else None
        wanted = Wanted(_matcher(options.grep, decoding), options.max, until_ms)
        return _print(target, options, begin_ms, wanted, decoding)
    except (CommandError, AdminError, RegistryError) as error:
        return complain(error)
    except BrokenPipeError:
        return 0  # the reader, such as `head`, has what it wanted


def _matcher(pattern: str | None, decoding: LineDecoding | None) -> Callable[[Any], bool]:
    """Whether a record has the pattern in its key or value, also as they are decoded. Raises CommandError."""
    if pattern is None:
        return lambda _: True
    try:
        search = re.compile(pattern.encode()).search
    except re.error as problem:
        raise CommandError(f'--grep: "{pattern}" is not a regular expression: {problem}') from None

    def matches(record: Any) -> bool:
        if any(part is not None and search(part) is not None for part in (record.key, record.value)):
            return True
        texts = () if decoding is None else decoding.texts(record)
        return any(search(text.encode()) is not None for text in texts)

    return matches


def _print(
    target: Target, options: Namespace, begin_ms: int | None, wanted: Wanted, decoding: LineDecoding | None
) -> int:
    import kafka.errors

    from kavka_operator.kafka.connection import consumer

    client = consumer(target.bootstrap, target.security)
    try:
        partitions = partitions_of(client, options.topic, options.partition)
        ends = client.end_offsets(partitions)
        begins = begin_offsets(client, ends, options.offset, begin_ms)
        if late := [partition for partition in partitions if options.offset not in {None, begins[partition]}]:
            note(f"{len(late)} partitions have no offset {options.offset}; they are begun at the nearest")
        client.assign(partitions)
        for partition, offset in begins.items():
            client.seek(partition, offset)
        write = sys.stdout.buffer.write
        for record in chosen(client, None if options.follow else ends, wanted):
            write(_line(record, decoding, is_value_alone=options.output == "value") + b"\n")
            sys.stdout.buffer.flush()
    except kafka.errors.KafkaError as error:
        raise CommandError(f"{options.topic}: {error}") from error
    finally:
        client.close()
    return 0


def _line(record: Any, decoding: LineDecoding | None, *, is_value_alone: bool) -> bytes:
    if is_value_alone:
        text = None if decoding is None else decoding.value_text(record)
        return (record.value or b"") if text is None else text.encode()
    return as_line(record, {} if decoding is None else decoding.fields(record)).encode()


def chosen(client: Any, ends: Mapping[Any, int] | None, wanted: Wanted) -> Iterator[Any]:
    """Yield the records that are wanted, up to `ends`, or as they come where there are none."""
    left, printed = set(client.assignment()), 0
    while left:
        if ends is not None:
            left = {partition for partition in left if client.position(partition) < ends[partition]}
        for partition, records in (client.poll(timeout_ms=POLL_MS) if left else {}).items():
            for record in records if partition in left else ():
                if ends is not None and record.offset >= ends[partition]:
                    break
                if wanted.until_ms is not None and record.timestamp >= wanted.until_ms:
                    left.discard(partition)
                    break
                if wanted.matches(record):
                    yield record
                    printed += 1
                    if printed == wanted.count_max:
                        return
        if left != set(client.assignment()):
            _keep(client, left)


def _keep(client: Any, left: set[Any]) -> None:
    """Go on with these partitions alone, from where they are."""
    positions = {partition: client.position(partition) for partition in left}
    client.assign(sorted(left))
    for partition, offset in positions.items():
        client.seek(partition, offset)
