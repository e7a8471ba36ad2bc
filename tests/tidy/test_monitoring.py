"""What the rules, dashboards, runbooks and documents name is there: metrics, pages, and places on the screen."""

import json
import re
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
import yaml

from kavka_audit.report.metrics import FAMILIES as OF_ANALYTICS
from kavka_broker.core.quota.entity_limits import CLUSTER, OBSERVED, OVERRIDE, PREFIX
from kavka_broker.runtime.dashboard_names import DASHBOARD_FAMILIES
from kavka_broker.runtime.metric_table import FAMILIES
from kavka_broker.runtime.metric_tables.family import Family
from kavka_broker.runtime.metrics import names_of, process_families
from kavka_cli.commands.audit.verify import FAMILIES as OF_VERIFICATION
from kavka_operator.process.metric_table import OPERATOR_FAMILIES
from tests.tidy.tree import MARKDOWN, ROOT, relative
from tools.dashboards.runbooks import PANELS as LINKED_RUNBOOKS
from tools.dashboards.runbooks import WITHOUT_A_PANEL

MONITORING = ROOT / "examples/monitoring"
OTHERS = ("operator", "analytics")
RULES = [*sorted((MONITORING / "rules").glob("*.yaml")), *(MONITORING / other / "rules.yaml" for other in OTHERS)]
OF_OPERATOR = MONITORING / "operator/dashboard.json"
DASHBOARDS = [
    *sorted((MONITORING / "dashboards").glob("*.json")),
    *(MONITORING / other / "dashboard.json" for other in OTHERS),
]
RUNBOOKS = sorted((ROOT / "docs/runbooks").glob("*.md"))
METRIC = re.compile(r"(?<![\w:./-])(?:kavka|kafka|process)_[a-z0-9_]+(?![\w:*/.({-]|\*)")
IN_QUERY = re.compile(r"[a-z_]+:[a-z_]+:\w+|\b(?:kavka|kafka|process)_\w+")
PACKAGES = {"kavka_broker", "kavka_operator", "kavka_audit", "kafka_python"}
PACKAGES |= {"kafka_cluster", "kafka_config", "kafka_process"}  # fixtures
SELECTED = re.compile(r"(\w+)\{([^}]*)\}")
COUNTER = re.compile(r"(?<!rate\()(?<!increase\()\b\w+_total\{")
PANEL_QUERY = tuple[str, str]


def rules() -> Iterator[dict[str, Any]]:
    for path in RULES:
        for group in yaml.safe_load(path.read_text())["groups"]:
            yield from group["rules"]


RECORDED = {rule["record"] for rule in rules() if "record" in rule}
ALERTS = {rule["alert"]: rule for rule in rules() if "alert" in rule}


def known() -> set[str]:
    """Every name that /metrics or a rule gives."""
    families: tuple[Family, ...] = (*FAMILIES, *DASHBOARD_FAMILIES)
    served = {name for family in families for name in (family.name, *names_of(family))}
    of_process = {sample.name for metric in process_families() for sample in metric.samples}
    of_operator = {name for family in OPERATOR_FAMILIES for name in (family.name, *family.samples)}
    return served | of_process | of_operator | set(OF_VERIFICATION) | set(OF_ANALYTICS) | RECORDED | {"up"}


def panels(path: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(path.read_text())["panels"]
    return found


def queries(path: Path) -> list[PANEL_QUERY]:
    return [(panel["title"], target["expr"]) for panel in panels(path) for target in panel.get("targets", ())]


def test_rules_and_dashboards_name_only_metrics_that_there_are() -> None:
    expressions = [rule["expr"] for rule in rules()]
    expressions += [query for path in DASHBOARDS for _, query in queries(path)]
    expressions += [
        variable["query"]["query"]
        for path in DASHBOARDS
        for variable in json.loads(path.read_text())["templating"]["list"]
        if variable["type"] == "query"
    ]
    named = {name for expression in expressions for name in IN_QUERY.findall(expression)}
    assert len(named) > 50
    assert sorted(named - known()) == []


@pytest.mark.parametrize("page", [page for page in MARKDOWN if relative(page).startswith("docs/")], ids=relative)
def test_documents_name_only_metrics_that_there_are(page: Path) -> None:
    text = "\n".join(line for line in page.read_text().splitlines() if " | grep " not in line)  # beginnings of names
    named = set(METRIC.findall(text)) - PACKAGES
    named -= {
        name for name in named if name.startswith((CLUSTER, OBSERVED, OVERRIDE, PREFIX, "kavka_share_"))
    }  # keys of quotas
    assert sorted(named - known()) == []


def test_each_alert_says_how_bad_it_is_and_has_its_page() -> None:
    for name, rule in ALERTS.items():
        assert rule["labels"]["severity"] in {"critical", "warning", "info"}, name
        assert set(rule["annotations"]) == {"summary", "description", "runbook"}, name
        assert rule["annotations"]["runbook"] == f"docs/runbooks/{name}.md"
    assert {page.stem for page in RUNBOOKS} == set(ALERTS)


@pytest.mark.parametrize("page", RUNBOOKS, ids=relative)
def test_a_runbook_says_what_it_means_how_to_look_and_what_to_do(page: Path) -> None:
    text = page.read_text()
    assert text.startswith(f"# {page.stem}\n")
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == ["How to look", "What to do"]
    assert "```promql" in text


@pytest.mark.parametrize("path", DASHBOARDS, ids=relative)
def test_the_panels_of_a_dashboard_lie_beside_each_other(path: Path) -> None:
    shown = panels(path)
    assert [panel["id"] for panel in shown] == list(range(1, len(shown) + 1))
    for panel in shown:
        assert panel["gridPos"]["x"] + panel["gridPos"]["w"] <= 24, panel["title"]
    for first, second in combinations(shown, 2):
        assert not overlap(first["gridPos"], second["gridPos"]), (first["title"], second["title"])


def overlap(first: dict[str, int], second: dict[str, int]) -> bool:
    return all(
        first[start] < second[start] + second[size] and second[start] < first[start] + first[size]
        for start, size in (("x", "w"), ("y", "h"))
    )


@pytest.mark.parametrize("path", DASHBOARDS, ids=relative)
def test_each_panel_is_explained_and_asks_the_chosen_source(path: Path) -> None:
    for panel in panels(path):
        if panel["type"] == "row":
            continue
        assert panel["description"].endswith("."), panel["title"]
        assert panel["fieldConfig"]["defaults"]["unit"], panel["title"]
        assert panel["targets"], panel["title"]
        assert len({target["refId"] for target in panel["targets"]}) == len(panel["targets"])
        for target in panel["targets"]:
            assert target["datasource"] == panel["datasource"] == {"type": "prometheus", "uid": "${source}"}


@pytest.mark.parametrize("path", DASHBOARDS, ids=relative)
def test_each_query_looks_at_the_chosen_cluster_and_takes_the_rate_of_counters(path: Path) -> None:
    for title, query in queries(path):
        is_of_operator = path == OF_OPERATOR  # whose labels are those of a resource
        is_chosen = all('cluster="$cluster"' in selected for _, selected in SELECTED.findall(query))
        is_of_all = path.name == "fleet.json" and re.match(r"(max|sum) by \(cluster\)", query)
        assert is_of_operator or is_chosen or is_of_all, title
        for window in re.findall(r"\[([^\]]+)\]", query):
            assert window in {"$__rate_interval", "$__range"}, title
        counters = [name for name in COUNTER.findall(query) if not name.startswith("kavka_assertions_failed")]
        assert not counters, title


def test_dashboards_have_ids_of_their_own() -> None:
    uids = [json.loads(path.read_text())["uid"] for path in DASHBOARDS]
    assert len(set(uids)) == len(uids) == 6


def test_grafana_finds_the_source_and_the_dashboards() -> None:
    """The keys that its provisioning wants, and the kind of source that the dashboards ask for."""
    (source,) = yaml.safe_load((MONITORING / "grafana/datasources.yaml").read_text())["datasources"]
    (provider,) = yaml.safe_load((MONITORING / "grafana/dashboards.yaml").read_text())["providers"]

    assert (source["type"], source["access"], source["url"][:7]) == ("prometheus", "proxy", "http://")
    assert (provider["type"], set(provider["options"])) == ("file", {"path"})


def test_panels_lead_to_the_runbooks_of_what_they_show() -> None:
    pages = {page.stem for page in RUNBOOKS}
    assert {*LINKED_RUNBOOKS, *WITHOUT_A_PANEL} == ALERTS.keys()
    found: dict[str, set[tuple[str, str]]] = {}
    for path in DASHBOARDS:
        dashboard = json.loads(path.read_text())
        (variable,) = [each for each in dashboard["templating"]["list"] if each["name"] == "runbooks"]
        assert (variable["type"], variable["query"]) == ("textbox", "docs/runbooks")
        for panel in dashboard["panels"]:
            for link in panel.get("links", ()):
                page = link["url"].removeprefix("${runbooks}/").removesuffix(".md")
                assert page in pages, link
                found.setdefault(page, set()).add((dashboard["uid"], panel["title"]))
    assert found == {alert: set(panels) for alert, panels in LINKED_RUNBOOKS.items()}, "a panel has another title"
