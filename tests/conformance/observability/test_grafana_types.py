"""Dashboards and panels, judged by Grafana's own types: @grafana/schema, and the compiler of TypeScript.

Grafana reads a field that it does not know as if it were not there, and a wrong word as its default.
"""

import json
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.support.programs import node_modules
from tests.tidy.tree import ROOT

pytestmark = [pytest.mark.node]

HERE: Final = Path(__file__).parent / "grafana"
DASHBOARDS: Final = sorted((ROOT / "examples/monitoring").rglob("*.json"))
STRICT: Final = ("--noEmit", "--strict", "--skipLibCheck", "--module", "esnext", "--moduleResolution", "bundler")
ERROR: Final = re.compile(r"^checked\.ts\((\d+),\d+\): error \w+: (.*)$", re.MULTILINE)
SECONDS_MAX: Final = 300
Json = dict[str, Any]


def parts(name: str, dashboard: Json) -> Iterator[tuple[str, str, Json]]:
    """The dashboard without its panels, and each panel: a name, the name of its type, and its JSON."""
    yield name, "dashboard", {key: value for key, value in dashboard.items() if key != "panels"}
    for panel in dashboard["panels"]:
        yield f"{name}: {panel['title']}", panel["type"], panel


def judged(found: list[tuple[str, str, Json]], directory: Path) -> list[str]:
    """What the compiler says of the parts, by their names."""
    kinds = sorted({kind for _, kind, _ in found})
    lines = [f'import type {{{", ".join(f"{kind} as {kind}_type" for kind in kinds)}}} from "./types";']
    lines += [f"export const part{at}: {kind}_type = {json.dumps(part)};" for at, (_, kind, part) in enumerate(found)]
    (directory / "checked.ts").write_text("\n".join(lines) + "\n")
    (directory / "types.ts").write_text((HERE / "types.ts").read_text())
    modules = node_modules(HERE)
    (directory / "node_modules").symlink_to(modules)
    ran = subprocess.run(
        ["node", str(modules / "typescript/bin/tsc"), *STRICT, "checked.ts"], cwd=directory, capture_output=True,
        text=True, check=False, timeout=SECONDS_MAX,
    )  # fmt: skip
    told = [f"{found[int(line) - 2][0]}: {words}" for line, words in ERROR.findall(ran.stdout)]
    assert "types.ts(" not in ran.stdout, ran.stdout
    assert told or ran.returncode == 0, ran.stdout + ran.stderr
    return told


def of(path: Path) -> list[tuple[str, str, Json]]:
    return [*parts(path.stem, json.loads(path.read_text()))]


def test_each_field_of_a_dashboard_is_one_that_grafana_knows(tmp_path: Path) -> None:
    assert judged([part for path in DASHBOARDS for part in of(path)], tmp_path) == []


FAULTS: Final[dict[str, tuple[str, Callable[[Json], Any]]]] = {
    "a field that a panel has not": ("timeseries", lambda panel: panel.update(legend={})),
    "a word that is none of an enumeration": (
        "timeseries",
        lambda panel: panel["options"]["tooltip"].update(mode="all"),
    ),
    "an option of another kind of panel": ("stat", lambda panel: panel["options"].update(cellHeight="sm")),
    "a number for a text": ("table", lambda panel: panel.update(description=7)),
    "a width that is a text": ("bargauge", lambda panel: panel["gridPos"].update(w="12")),
    "a query without an expression's name": ("stat", lambda panel: panel["targets"][0].update(expression="up")),
    "a link of a row": ("row", lambda panel: panel.update(links=[])),
    "a field of no dashboard": ("dashboard", lambda dashboard: dashboard.update(folder="Kavka")),
    "a place of a tooltip that is none": ("dashboard", lambda dashboard: dashboard.update(graphTooltip=7)),
}


def test_what_grafana_would_pass_over_in_silence_is_found(tmp_path: Path) -> None:
    kinds: dict[str, Json] = {kind: part for path in DASHBOARDS for _, kind, part in of(path)}
    planted = list[tuple[str, str, Json]]()
    for name, (kind, spoil) in FAULTS.items():
        part = json.loads(json.dumps(kinds[kind]))
        spoil(part)
        planted.append((name, kind, part))
    told = judged(planted, tmp_path)
    assert {line.partition(":")[0] for line in told} == FAULTS.keys()
