"""Finds the commands of `kavka`: a file of `commands` is a command, a folder there is a group, as `kavka audit`.

A command's module has `HELP`, `add_options(parser)` and `run(options)`, which returns the exit code. It is imported
when its name is the word given. To list commands, their HELP is read from the source: `kavka --help` imports none.
A group's package has `HELP`, `TITLE`, which heads its commands, and `METAVAR`, the word for one of them.
"""

import argparse
import ast
import pkgutil
from collections.abc import Iterator
from difflib import get_close_matches
from importlib import import_module
from importlib.abc import InspectLoader
from importlib.util import find_spec
from typing import Any, Final

from kavka_cli import commands

BODY: Final = ("\ndef ", "\nclass ", "\n@")
"""The first of these ends the head of a module, which HELP is in."""


class Parser(argparse.ArgumentParser):
    """Takes options before, between and after the words of a command, as kubectl does."""

    _is_between = False

    def _check_value(self, action: Any, value: Any) -> None:
        """Raise ArgumentError for a word that is no command; the message has the nearest one."""
        if isinstance(action, argparse._SubParsersAction) and value not in action.choices:
            near = get_close_matches(str(value), list(action.choices), 1)
            fix = f'did you mean "{near[0]}"?' if near else f"`{self.prog} --help` lists them"
            raise argparse.ArgumentError(None, f'there is no command "{value}"; {fix}')
        super()._check_value(action, value)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        if self._subparsers is not None or self._is_between:
            return super().parse_known_args(args, namespace)
        self._is_between = True
        try:
            return self.parse_known_intermixed_args(args, namespace)
        finally:
            self._is_between = False


class CommandParser(Parser):
    """The parser of one command or group, which imports its module when it parses or is asked to `load`."""

    def __init__(self, *, module: str, **options: Any) -> None:
        super().__init__(allow_abbrev=False, **options)
        self.module = module
        self._is_loaded = False

    def load(self) -> None:
        """Import the module, and add the options of the command or the commands of the group."""
        if self._is_loaded:
            return
        self._is_loaded = True
        module = import_module(self.module)
        self.description = module.HELP
        if hasattr(module, "__path__"):
            group = self.add_subparsers(
                metavar=module.METAVAR, title=module.TITLE, required=True, parser_class=CommandParser
            )
            add_commands(group, module)
        else:
            module.add_options(self)
            self.set_defaults(run=module.run)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        self.load()
        return super().parse_known_args(args, namespace)


def add_commands(parsers: Any, package: Any, *, has_help: bool = True) -> None:
    """Add a parser for each command and group of the package; without `has_help` they are not listed."""
    for name in command_names(package):
        module = f"{package.__name__}.{name}"
        shown = {"help": help_of(module)} if has_help else {}
        parsers.add_parser(name, module=module, **shown)


def command_names(package: Any = commands) -> list[str]:
    """The commands and groups of a package: those of its ORDER first, then the others by name."""
    found = sorted(module.name for module in pkgutil.iter_modules(package.__path__))
    order = list(getattr(package, "ORDER", ()))
    return sorted(found, key=lambda name: order.index(name) if name in order else len(order))


def help_of(module: str) -> str:
    """The HELP of a module, from its source. Raises LookupError where it has none that is a plain text."""
    spec = find_spec(module)
    loader = spec.loader if spec is not None else None
    assert isinstance(loader, InspectLoader), "a command is a file of Python"
    head = loader.get_source(module) or ""
    for begin in BODY:
        head = head.partition(begin)[0]
    for name, value in _assignments(ast.parse(head)):
        if name == "HELP":
            return str(ast.literal_eval(value))
    raise LookupError(f"{module}: HELP is missing: one line for `kavka --help`, above the first function")


def _assignments(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    for statement in tree.body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                yield name, value
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                yield name, value
