"""Finds the handlers: every `aNN_*.py` of the package `api`, which registers itself when it is imported."""

from importlib import import_module
from pkgutil import iter_modules

from kavka_broker import api
from kavka_broker.request.registry import APIS, Api


def load() -> dict[int, Api]:
    """Import every handler; returns the registered APIs in the order of their keys."""
    for module in iter_modules(api.__path__):
        if module.name[0] == "a" and module.name[1:3].isdigit():
            import_module(f"{api.__name__}.{module.name}")
    return dict(sorted(APIS.items()))
