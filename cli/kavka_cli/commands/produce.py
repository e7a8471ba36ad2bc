"""`kavka produce`: writes lines of standard input to a topic of any Kafka, with acks=all."""

import sys
from argparse import ArgumentParser, Namespace
from collections import deque
from collections.abc import Iterable
from typing import Any, Final

from kavka_cli.local_clusters import add_state_directory
from kavka_cli.output import CommandError, complain, note
from kavka_cli.record_lines import BadLineError, NewRecord, record_of
from kavka_cli.target import Target, add_target, find_target, target_options
from kavka_operator.kafka.admin import AdminError

HELP = "Write lines of standard input to a topic, of any Kafka too: JSON as `kavka consume` prints it, or plain text."
UNANSWERED_MAX: Final = 10_000
ANSWER_SECONDS_MAX: Final = 120.0


def add_options(parser: ArgumentParser) -> None:
    """Add the options of `kavka produce`."""
    add_state_directory(parser)
    add_target(parser, has_pages=False)
    parser.add_argument("--topic", "-t", required=True, metavar="TOPIC", help="The topic.")
    parser.add_argument("--lines", action="store_true", help="Each line is the value of a record, as it stands.")
    parser.add_argument("--key", metavar="TEXT", help="The key of records that have none.")


def run(options: Namespace) -> int:
    """Write the records; the exit code."""
    try:
        return _write(find_target(target_options(options, is_change=True)), options, sys.stdin.buffer)
    except (CommandError, AdminError) as error:
        return complain(error)


def record_of_line(line: bytes, number: int, *, is_plain: bool, key: str | None) -> NewRecord:
    """The record that a line of the input is. Raises CommandError, which names the line."""
    text = line.rstrip(b"\n").removesuffix(b"\r")
    own = None if key is None else key.encode()
    if is_plain:
        return NewRecord(text, own)
    try:
        record = record_of(text.decode())
    except UnicodeDecodeError:
        raise CommandError(f"line {number}: is not UTF-8 text") from None
    except BadLineError as problem:
        raise CommandError(f"line {number}: {problem}") from None
    if record.key is None and own is not None:
        return NewRecord(record.value, own, record.headers, record.partition)
    return record


def _write(target: Target, options: Namespace, lines: Iterable[bytes]) -> int:
    import kafka.errors

    from kavka_operator.kafka.connection import producer

    client, answers, written = producer(target.bootstrap, target.security), deque[Any](), 0
    try:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            record = record_of_line(line, number, is_plain=options.lines, key=options.key)
            headers = list(record.headers)
            answers.append(
                client.send(options.topic, record.value, record.key, headers=headers, partition=record.partition)
            )
            while len(answers) > UNANSWERED_MAX:
                answers[0].get(ANSWER_SECONDS_MAX)
                answers.popleft()
                written += 1
        client.flush(ANSWER_SECONDS_MAX)
        for answer in answers:
            answer.get(ANSWER_SECONDS_MAX)
    except (kafka.errors.KafkaError, ValueError, AssertionError) as error:  # the last two where a partition is missing
        raise CommandError(f"{options.topic}: {error or 'the record was not taken'}") from error
    finally:
        client.close(timeout=ANSWER_SECONDS_MAX)  # what was sent before a bad line is written
        written += sum(answer.succeeded() for answer in answers)
        note(f"{written} records are written")
    return 0
