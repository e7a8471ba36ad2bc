"""`kavka completion`: a script by which a shell completes commands and options, written by shtab from the parser."""

import argparse
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from typing import Final

import shtab

from kavka_cli.output import say
from kavka_cli.registry import CommandParser

PROFILES: Final = "kavka profile list -o name 2>/dev/null"
HELP = 'Print completion for a shell: eval "$(kavka completion bash)".'


def add_options(parser: ArgumentParser) -> None:
    """Add the options of `kavka completion`."""
    parser.add_argument("shell", choices=sorted(shtab.SUPPORTED_SHELLS), help="The shell.")


def run(options: Namespace) -> int:
    """Print the script; the exit code."""
    from kavka_cli.app import parser

    root = parser()
    load_all(root)
    complete_profiles(root)
    say(shtab.complete(root, shell=options.shell))
    return 0


def load_all(parser: ArgumentParser) -> None:
    """Add the options of every command and group below a parser, which else come when a command is parsed."""
    for command in commands_of(parser):
        command.load()
        load_all(command)


def complete_profiles(parser: ArgumentParser) -> None:
    """Let the shell ask for the names of profiles wherever one is an argument."""
    for action in parser._actions:
        if action.metavar == "PROFILE":
            vars(action)["complete"] = shtab.cmd(PROFILES)
    for command in commands_of(parser):
        complete_profiles(command)


def commands_of(parser: ArgumentParser) -> Iterator[CommandParser]:
    """Give the parsers of the commands of a root or a group."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            yield from (command for command in action.choices.values() if isinstance(command, CommandParser))
