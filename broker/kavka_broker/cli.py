"""The command `kavka-broker`: format log directories, run a broker.

    kavka-broker format --config server.properties --cluster-id ID [--standalone | --initial-controllers LIST | ...]
    kavka-broker run --config server.properties [--override KEY=VALUE ...]

The file is Apache Kafka's server.properties. A configuration that cannot stand is told in one line, exit code 2.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from kavka_broker.core.config.broker import BrokerConfig
from kavka_broker.core.config.definition import ConfigError
from kavka_broker.core.config.properties import parse_properties

EXIT_USAGE = 2
FORMATTED_BEFORE = "KAVKA_FORMATTED_BEFORE"
"""Names directories, with commas between them, to any version: one that does not know it formats as it always has."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command and exit with its code."""
    options = parser().parse_args(arguments)
    try:
        config = read_config(options.config, getattr(options, "override", ()))
        sys.exit(format_directories(config, options) if options.command == "format" else run(config))
    except ConfigError as error:
        fail(f"{options.config}: {error}")


def parser() -> argparse.ArgumentParser:
    root = argparse.ArgumentParser(prog="kavka-broker", description="A Kafka broker and controller.")
    commands = root.add_subparsers(dest="command", required=True)
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument("--config", "-c", type=Path, required=True, help="server.properties")
    formatting = commands.add_parser("format", parents=[shared], help="prepare the log directories")
    formatting.add_argument("--cluster-id", "-t", required=True, help="22 characters of base64url")
    formatting.add_argument("--ignore-formatted", "-g", action="store_true", help="leave what is formatted as it is")
    voters = formatting.add_mutually_exclusive_group()
    voters.add_argument("--standalone", "-s", action="store_true", help="begin a quorum with this controller alone")
    voters.add_argument(
        "--initial-controllers", "-I", metavar="LIST", help="begin with these: ID@HOST:PORT:DIRECTORY_ID,..."
    )
    voters.add_argument("--no-initial-controllers", "-N", action="store_true", help="join a quorum that is there")
    formatting.add_argument(
        "--directory-id", action="append", default=[], metavar="DIRECTORY=ID", help="give a log directory this id"
    )
    formatting.add_argument(
        "--formatted-before",
        action="append",
        default=[],
        metavar="DIRECTORY",
        help=f"refuse this log directory where it is empty: it has held something; {FORMATTED_BEFORE} names more",
    )
    formatting.add_argument(
        "--add-scram",
        "-S",
        action="append",
        default=[],
        metavar="MECHANISM=[name=N,password=P]",
        help="begin with a user that logs in by SCRAM",
    )
    running = commands.add_parser("run", parents=[shared], help="run until SIGTERM or SIGINT")
    running.add_argument(
        "--override", action="append", default=[], metavar="KEY=VALUE", help="a setting in place of the file's"
    )
    return root


def read_config(path: Path, overrides: Sequence[str] = ()) -> BrokerConfig:
    """The settings of a file, some in place of its own: KEY=VALUE. Raises ConfigError."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        fail(f"{path}: {error.strerror}")
    except UnicodeDecodeError as error:
        fail(f"{path}: byte {error.start} is not UTF-8; write other characters as \\u and four hexadecimal digits")
    if text.startswith("\ufeff"):
        fail(f"{path}: begins with a byte order mark, which would be a part of the first key; save it without one")
    if wrong := next((words for words in overrides if not words.partition("=")[1]), None):
        fail(f"--override {wrong}: write KEY=VALUE")
    pairs = [words.partition("=") for words in overrides]
    return BrokerConfig.parse({**parse_properties(text), **{key.strip(): value.strip() for key, _, value in pairs}})


def format_directories(config: BrokerConfig, options: argparse.Namespace) -> int:
    from kavka_broker.controller.first_users import first_users
    from kavka_broker.controller.format import (
        FormatError,
        FormatOptions,
        Voters,
        format_directory,
        parse_directory_ids,
        parse_voters,
    )
    from kavka_broker.runtime.clock import SystemClock
    from kavka_broker.storage.disk import RealDisk

    given, listener = options.initial_controllers, config.listeners.controller_names[0]
    try:
        initial = parse_voters(given, listener) if given is not None else ()
        formatted = format_directory(
            RealDisk(),
            config,
            options.cluster_id,
            FormatOptions(
                Voters(options.standalone, initial, options.no_initial_controllers),
                options.ignore_formatted,
                parse_directory_ids(options.directory_id),
                [*options.formatted_before, *filter(None, os.environ.get(FORMATTED_BEFORE, "").split(","))],
                first_users(options.add_scram, os.urandom),
            ),
            now_ms=SystemClock().now_ms(),
            random_bytes=os.urandom,
        )
    except FormatError as error:
        fail(str(error))
    for directory in formatted.new:
        sys.stdout.write(f"formatted {directory} for cluster {options.cluster_id}\n")
    for directory in formatted.already:
        sys.stdout.write(f"left {directory} as it is\n")
    return 0


def run(config: BrokerConfig) -> int:
    """Run until the process is told to stop. Refuses a Python without assertions: they are the broker's guard."""
    if sys.flags.optimize:
        fail("does not run without assertions: leave out python -O and PYTHONOPTIMIZE")
    from kavka_broker.runtime.process import run_until_stopped

    return run_until_stopped(config)


def fail(message: str) -> NoReturn:
    sys.stderr.write(f"kavka-broker: {message}\n")
    sys.exit(EXIT_USAGE)
