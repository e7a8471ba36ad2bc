"""What a dashboard is made of, and Grafana's JSON of it: 24 columns, filled from the left and from the top."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from tools.dashboards import runbooks

SCHEMA_VERSION: Final = 39  # Grafana 10.4 and newer read it
COLUMNS: Final = 24
SOURCE: Final = {"type": "prometheus", "uid": "${source}"}
HEIGHTS: Final = {"stat": 4, "timeseries": 8, "bargauge": 8, "table": 10}

Json = dict[str, Any]
Kind = Literal["stat", "timeseries", "bargauge", "table"]


@dataclass(frozen=True, slots=True)
class Query:
    """A query, and what a series of it is called; in a table, its column, whose values have this unit."""

    expression: str
    legend: str = ""
    unit: str = ""


@dataclass(frozen=True, slots=True)
class Link:
    """A link from each value of a table's column; `url` may have Grafana's variables."""

    column: str
    title: str
    url: str


@dataclass(frozen=True, slots=True)
class Mark:
    """Moments that are marked in each panel over time: those at which a query has a series."""

    name: str
    expression: str
    text: str
    colour: str


@dataclass(frozen=True, slots=True)
class Panel:
    """A panel; `help` is what its (i) says. `red_from`: the value from which on it is shown in red."""

    title: str
    help: str
    queries: tuple[Query, ...]
    unit: str = "short"
    kind: Kind = "timeseries"
    width: int = 8
    red_from: float | None = None
    most: float | None = None  # the top of the scale
    links: tuple[Link, ...] = ()


@dataclass(frozen=True, slots=True)
class Row:
    """Panels under a heading."""

    title: str
    panels: tuple[Panel, ...]


@dataclass(frozen=True, slots=True)
class Variable:
    """A choice at the top of the dashboard; `is_many` offers several of them, and all."""

    name: str
    query: str
    is_many: bool = True


@dataclass(frozen=True, slots=True)
class Dashboard:
    """A whole dashboard."""

    uid: str
    title: str
    help: str
    variables: tuple[Variable, ...]
    rows: tuple[Row, ...]
    marks: tuple[Mark, ...] = ()


def number(title: str, help_: str, expression: str, *, red_from: float | None = None, unit: str = "short") -> Panel:
    """A small panel with one number."""
    return Panel(title, help_, (Query(expression),), unit, "stat", 4, red_from)


def dashboard_json(of: Dashboard) -> Json:
    """The file that Grafana imports."""
    return {
        "uid": of.uid,
        "title": of.title,
        "description": of.help,
        "tags": ["kavka"],
        "schemaVersion": SCHEMA_VERSION,
        "editable": False,
        "graphTooltip": 1,
        "refresh": "30s",
        "time": {"from": "now-1h", "to": "now"},
        "links": [LINKS],
        "annotations": {"list": [mark_json(mark) for mark in of.marks]},
        "templating": {"list": [source_variable(), *map(variable_json, of.variables), runbooks.variable()]},
        "panels": [with_runbooks(of.uid, panel) for panel in numbered(laid_out(of.rows))],
    }


LINKS: Final[Json] = {
    "title": "Kavka",
    "type": "dashboards",
    "tags": ["kavka"],
    "asDropdown": True,
    "includeVars": True,
    "keepTime": True,
    "targetBlank": False,
    "icon": "external link",
    "tooltip": "The other dashboards, of the same cluster and time",
    "url": "",
}


def mark_json(mark: Mark) -> Json:
    return {
        "name": mark.name,
        "datasource": SOURCE,
        "enable": True,
        "expr": mark.expression,
        "step": "60s",
        "titleFormat": mark.name,
        "textFormat": mark.text,
        "iconColor": mark.colour,
    }


def source_variable() -> Json:
    return {"name": "source", "label": "Data source", "type": "datasource", "query": "prometheus"}


def variable_json(variable: Variable) -> Json:
    many: Json = {"multi": True, "includeAll": True, "allValue": ".*", "current": {"text": "All", "value": "$__all"}}
    return {
        "name": variable.name,
        "label": variable.name.capitalize(),
        "type": "query",
        "datasource": SOURCE,
        "query": {"query": variable.query, "refId": variable.name},
        "refresh": 2,  # when the time range changes
        "sort": 1,
        **(many if variable.is_many else {}),
    }


def with_runbooks(uid: str, panel: Json) -> Json:
    """The panel with the links to the runbooks of what it shows; Grafana shows none of a row."""
    links = [] if panel["type"] == "row" else runbooks.links_of(uid, panel["title"])
    return {**panel, "links": links} if links else panel


def numbered(panels: Iterable[Json]) -> Iterator[Json]:
    """Yield the panels with an id each."""
    for number_, panel in enumerate(panels, 1):
        yield {"id": number_, **panel}


def laid_out(rows: Sequence[Row]) -> Iterator[Json]:
    """Yield headings and panels, each with its place."""
    top = 0
    for row in rows:
        yield {
            "type": "row",
            "title": row.title,
            "collapsed": False,
            "gridPos": place(0, top, COLUMNS, 1),
            "panels": [],
        }
        top += 1
        left = height = 0
        for panel in row.panels:
            if left + panel.width > COLUMNS:
                left, top, height = 0, top + height, 0
            yield panel_json(panel, place(left, top, panel.width, HEIGHTS[panel.kind]))
            left, height = left + panel.width, max(height, HEIGHTS[panel.kind])
        top += height


def place(left: int, top: int, width: int, height: int) -> Json:
    return {"x": left, "y": top, "w": width, "h": height}


def panel_json(panel: Panel, where: Json) -> Json:
    return {
        "type": panel.kind,
        "title": panel.title,
        "description": panel.help,
        "datasource": SOURCE,
        "gridPos": where,
        "targets": [target(query, index, panel.kind) for index, query in enumerate(panel.queries)],
        "fieldConfig": {"defaults": defaults(panel), "overrides": list(overrides(panel))},
        "options": OPTIONS[panel.kind],
        **({"transformations": columns(panel)} if panel.kind == "table" else {}),
    }


def overrides(panel: Panel) -> Iterator[Json]:
    """Yield the units and links of a table's columns."""
    for query in panel.queries:
        if query.unit:
            yield {
                "matcher": {"id": "byName", "options": query.legend},
                "properties": [{"id": "unit", "value": query.unit}],
            }
    for link in panel.links:
        yield {
            "matcher": {"id": "byName", "options": link.column},
            "properties": [{"id": "links", "value": [{"title": link.title, "url": link.url}]}],
        }


def columns(panel: Panel) -> list[Json]:
    """Return how the answers become one table: a row for the same labels, a column for each query."""
    names = {f"Value #{chr(ord('A') + index)}": query.legend for index, query in enumerate(panel.queries)}
    if len(panel.queries) == 1:
        names = {"Value": panel.queries[0].legend}
    hidden = {"excludeByName": {"Time": True}, "renameByName": names}
    return [{"id": "merge", "options": {}}, {"id": "organize", "options": hidden}]


def target(query: Query, index: int, kind: Kind) -> Json:
    is_now = kind != "timeseries"
    return {
        "refId": chr(ord("A") + index),
        "datasource": SOURCE,
        "expr": query.expression,
        "legendFormat": query.legend or "__auto",
        "instant": is_now,
        "range": not is_now,
        **({"format": "table"} if kind == "table" else {}),
    }


def defaults(panel: Panel) -> Json:
    """The unit, the scale, and the colours."""
    steps: list[Json] = [{"color": "green", "value": None}]
    if panel.red_from is not None:
        steps.append({"color": "red", "value": panel.red_from})
    return {
        "unit": panel.unit,
        "min": 0,
        **({} if panel.most is None else {"max": panel.most}),
        "thresholds": {"mode": "absolute", "steps": steps},
        "color": {"mode": "palette-classic" if panel.kind == "timeseries" else "thresholds"},
    }


SERIES: Final[Json] = {
    "legend": {"displayMode": "table", "placement": "bottom", "calcs": ["lastNotNull", "max"], "sortBy": "Last *"},
    "tooltip": {"mode": "multi", "sort": "desc"},
}
NOW: Final[Json] = {"reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False}}
OPTIONS: Final[dict[str, Json]] = {
    "timeseries": SERIES,
    "stat": {**NOW, "colorMode": "value", "graphMode": "none", "textMode": "value"},
    "table": {"showHeader": True, "cellHeight": "sm"},
    "bargauge": {**NOW, "displayMode": "gradient", "orientation": "horizontal"},
}
