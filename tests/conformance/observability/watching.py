"""A real Prometheus that watches brokers, and what the dashboards and rules ask it."""

import json
import re
import subprocess
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

import yaml

from tests.support.programs import of_prometheus
from tests.support.servers import free_port

MONITORING: Final = Path(__file__).parents[3] / "examples/monitoring"
RULES: Final = tuple(sorted((MONITORING / "rules").glob("*.yaml")))
OF_OPERATOR: Final = MONITORING / "operator/rules.yaml"
OF_ANALYTICS: Final = MONITORING / "analytics/rules.yaml"
DASHBOARDS: Final = tuple(sorted((MONITORING / "dashboards").glob("*.json")))
CLUSTER: Final = "watched"
VALUES: Final = {"cluster": CLUSTER, "__rate_interval": "1m", "__range": "1m"}
ANY: Final = ".*"
ASK_SECONDS_MAX: Final = 60
READY_SECONDS_MAX: Final = 180  # some rates are over a minute


@dataclass(frozen=True, slots=True)
class Prometheus:
    """One that runs on loopback."""

    url: str

    def get(self, path: str, **parameters: str) -> Any:
        """What the API answers; raises AssertionError with its words where it refuses."""
        line = f"{self.url}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        try:
            with urllib.request.urlopen(line, timeout=ASK_SECONDS_MAX) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as refusal:
            raise AssertionError(f"{parameters}: {refusal.read().decode()}") from refusal

    def series(self, expression: str) -> list[Any]:
        """The series that a query returns now."""
        found: list[Any] = self.get("query", query=expression)["result"]
        return found

    def names(self) -> set[str]:
        """The names of all metrics that it has read or recorded."""
        return set(self.get("label/__name__/values"))

    def is_up(self, count: int) -> bool:
        """Whether it answers and has read so many targets."""
        try:
            return len(self.series("up == 1")) == count
        except (OSError, AssertionError):
            return False  # it has only begun


@contextmanager
def prometheus(directory: Path, targets: Sequence[str]) -> Iterator[Prometheus]:
    """Start one that reads the targets each second, with the rules of examples/monitoring; ended at the end."""
    config: dict[str, Any] = yaml.safe_load((MONITORING / "prometheus.yml").read_text())
    config["global"] = {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"}
    config["rule_files"] = [str(hasty(path, directory)) for path in RULES]
    config["scrape_configs"][0]["static_configs"] = [{"targets": list(targets), "labels": {"cluster": CLUSTER}}]
    path, address = directory / "prometheus.yml", f"127.0.0.1:{free_port()}"
    path.write_text(yaml.safe_dump(config))
    line = [of_prometheus("prometheus"), f"--config.file={path}", f"--web.listen-address={address}"]
    with (directory / "prometheus.log").open("wb") as log:
        process = subprocess.Popen(
            [*line, f"--storage.tsdb.path={directory / 'tsdb'}"], stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )
    try:
        yield Prometheus(f"http://{address}")
    finally:
        process.kill()
        process.wait()


@contextmanager
def textfiles(directory: Path) -> Iterator[str]:
    """Serve the `*.prom` files of a directory at /metrics, as node-exporter's textfile collector does; the address."""

    class Collector(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            text = "".join(path.read_text() for path in sorted(directory.glob("*.prom"))).encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name of the base class
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Collector)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def hasty(path: Path, directory: Path) -> Path:
    """Copy a file of rules of which no group waits for longer than the others."""
    content = yaml.safe_load(path.read_text())
    for group in content["groups"]:
        group.pop("interval", None)
    copy = directory / path.name
    copy.write_text(yaml.safe_dump(content))
    return copy


def wait(what: str, left: Any) -> None:
    """Call `left` until it returns nothing; raises AssertionError with what it returned last."""
    ends = time.monotonic() + READY_SECONDS_MAX
    while found := left():
        assert time.monotonic() < ends, f"{what}: {found}"
        time.sleep(0.2)


def rules(files: Sequence[Path] = RULES) -> Iterator[Mapping[str, Any]]:
    """Yield every rule of every file."""
    for path in files:
        for group in yaml.safe_load(path.read_text())["groups"]:
            yield from group["rules"]


def recorded() -> dict[str, str]:
    """The expressions of the recording rules by name."""
    return {rule["record"]: rule["expr"] for rule in rules() if "record" in rule}


def alerts(files: Sequence[Path] = RULES) -> dict[str, Mapping[str, Any]]:
    """The rules of these files that are alerts, by name."""
    return {rule["alert"]: rule for rule in rules(files) if "alert" in rule}


def panels(path: Path) -> list[Mapping[str, Any]]:
    found: list[Mapping[str, Any]] = json.loads(path.read_text())["panels"]
    return found


def queries(path: Path) -> Iterator[tuple[str, str]]:
    """Yield title and query of each target of a dashboard, as Grafana sends it when all is chosen."""
    for panel in panels(path):
        for target in panel.get("targets", ()):
            yield panel["title"], re.sub(r"\$(\w+)", lambda name: VALUES.get(name[1], ANY), target["expr"])
