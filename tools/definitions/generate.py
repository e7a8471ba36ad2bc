"""Writes what follows from the models: `crds/*.yaml`, the same in the Helm chart, and `docs/reference/resources.md`.

The rules of `examples/monitoring` are copied into the chart as they are.

`python -m tools.definitions.generate` writes; with `--check` it says what has drifted and exits 1.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

from kavka_operator.api.kinds import KINDS
from tools.definitions.chart import definition_template, settings, text_of
from tools.definitions.crd import definition
from tools.definitions.reference import reference

HEAD = "# Generated from kavka_operator/api by `make generate`. Do not edit.\n"
OF_EXAMPLES = (
    "# Copied from examples/monitoring by `make generate`, as a chart reads no file outside of it. Do not edit.\n"
)
CHART = Path("charts") / "kavka"
MONITORING = (
    "rules/audit.yaml",
    "rules/broker.yaml",
    "rules/quotas.yaml",
    "operator/rules.yaml",
    "analytics/rules.yaml",
)


def outputs(root: Path) -> Iterator[tuple[Path, str]]:
    """Each generated file of the repository at `root`, with the text that it should hold."""
    for kind in KINDS.values():
        yield root / "crds" / f"{kind.plural}.yaml", HEAD + text_of(definition(kind))
        yield root / CHART / "templates" / "crds" / f"{kind.plural}.yaml", HEAD + definition_template(kind)
    yield root / CHART / "files" / "settings.yaml", HEAD + settings()
    for path in MONITORING:
        text = (root / "examples" / "monitoring" / path).read_text()
        yield root / CHART / "files" / "monitoring" / _in_chart(path), OF_EXAMPLES + text
    yield root / "docs" / "reference" / "resources.md", reference()


def _in_chart(path: str) -> str:
    """The name in the chart of a file of rules, which is the last part of a PrometheusRule's."""
    folder, _, name = path.partition("/")
    return f"{folder}.yaml" if name == "rules.yaml" else name


def drifted(root: Path) -> list[Path]:
    """The generated files whose text is out of date."""
    return [path for path, text in outputs(root) if not path.exists() or path.read_text() != text]


def main(arguments: list[str]) -> int:
    """Write or check, in the repository that holds this package."""
    root = Path(__file__).parents[2]
    if "--check" in arguments:
        stale = drifted(root)
        for path in stale:
            sys.stderr.write(f"{path.relative_to(root)} has drifted from the models; run `make generate`\n")
        return 1 if stale else 0
    for path, text in outputs(root):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
