"""Write the messages, or with --check say what would change.

Usage: python -m tools.generate_messages [--jars DIRECTORY] [--newer DIRECTORY] [--check]
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tools.generate_messages import render
from tools.generate_messages.schema import PACKAGES, Schema, read_jars
from tools.kafka_jars import kafka_jars, newer_jars

TARGET = Path(__file__).parents[2] / "broker/kavka_broker/protocol/messages"


def main() -> int:
    """Generate; returns 0, with --check 1 where a file has drifted."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jars", type=Path, default=None, help="directory of Kafka's jars (default: fetched, cached)")
    parser.add_argument("--newer", type=Path, default=None, help="directory of the newest Kafka's jars (likewise)")
    parser.add_argument("--check", action="store_true", help="change nothing; fail where the files have drifted")
    options = parser.parse_args()
    wanted = files(read_jars(options.jars or kafka_jars(), options.newer or newer_jars()))
    return check(wanted) if options.check else write(wanted)


def files(schemas: list[Schema]) -> dict[Path, str]:
    """Every generated file and its text: none for a message that is left out, which the index names."""
    wanted = {TARGET / package / "__init__.py": render.package_head(package) for package in PACKAGES.values()}
    wanted |= {
        TARGET / schema.package / f"{schema.module}.py": render.module(schema)
        for schema in schemas
        if not schema.is_left_out
    }
    return wanted | {TARGET / "index.py": render.index(schemas)}


def write(wanted: dict[Path, str]) -> int:
    for path in stale(wanted):
        path.unlink()
    for path, text in wanted.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
    print(f"{len(wanted)} files in {TARGET}")
    return 0


def check(wanted: dict[Path, str]) -> int:
    drifted = [path for path, text in wanted.items() if not path.exists() or path.read_text() != text]
    drifted += stale(wanted)
    for path in drifted:
        print(f"{path}: differs from Kafka's schemas; run `make generate`", file=sys.stderr)
    return 1 if drifted else 0


def stale(wanted: dict[Path, str]) -> list[Path]:
    return [path for path in sorted(TARGET.rglob("*.py")) if path not in wanted]


if __name__ == "__main__":
    sys.exit(main())
