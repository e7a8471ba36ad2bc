"""What a Prometheus has kept of clients' usage, over its HTTP API (query_range)."""

import json
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from http.client import HTTPException
from typing import Any

from kavka_operator.kafka.admin import AdminError
from kavka_operator.kafka.broker_metrics import BYTES, DEMAND, RATES
from kavka_operator.quota.recommendation import Observed, Samples

TIMEOUT_SECONDS = 30.0
ANSWER_BYTES_MAX = 64 * 1024 * 1024
POINTS_MAX = 1000
STEP_SECONDS_MIN = 15.0
COUNTED = f"rate({BYTES}[2m])"


def kept(url: str, seconds: float, now_s: float) -> dict[Observed, Samples]:
    """Samples of the last seconds. Raises AdminError where Prometheus does not tell."""
    rates: dict[Observed, dict[float, float]] = {}
    for labels, points in _series(url, COUNTED, seconds, now_s):
        rates[_who(labels, labels.get("quota_type", ""))] = points
    for metric, kind in RATES.items():  # of who is under a quota, as that measures them
        for labels, points in _series(url, metric, seconds, now_s):
            rates[_who(labels, kind)] = points
    demands = {
        _who(labels, labels.get("quota_type", "")): points for labels, points in _series(url, DEMAND, seconds, now_s)
    }
    return {who: _samples(rates.get(who, {}), demands.get(who, {})) for who in sorted({*rates, *demands})}


def _samples(rates: Mapping[float, float], demands: Mapping[float, float]) -> Samples:
    samples = Samples()
    for moment in sorted({*rates, *demands}):
        samples.add(rates.get(moment), demands.get(moment))
    return samples


def _who(labels: Mapping[str, str], kind: str) -> Observed:
    return Observed(labels.get("user", ""), labels.get("client_id", ""), kind, labels.get("instance", ""))


def _series(url: str, query: str, seconds: float, now_s: float) -> Iterator[tuple[dict[str, str], dict[float, float]]]:
    step = max(STEP_SECONDS_MIN, seconds / POINTS_MAX)
    asked = {"query": query, "start": f"{now_s - seconds:.3f}", "end": f"{now_s:.3f}", "step": f"{step:.3f}"}
    for found in _ask(f"{url.rstrip('/')}/api/v1/query_range?{urllib.parse.urlencode(asked)}"):
        points = {float(moment): float(value) for moment, value in found["values"]}
        yield found["metric"], {moment: value for moment, value in points.items() if value >= 0}


def _ask(url: str) -> list[dict[str, Any]]:
    """The series of an answer. Raises AdminError."""
    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT_SECONDS) as answer:  # noqa: S310 - the caller's own URL
            said = json.loads(answer.read(ANSWER_BYTES_MAX))
        if said["status"] != "success" or said["data"]["resultType"] != "matrix":
            raise AdminError(f"Prometheus answers {said['status']}: {said.get('error', 'no matrix')}")
        series: list[dict[str, Any]] = said["data"]["result"]
    except (OSError, HTTPException, ValueError, KeyError, TypeError) as error:
        raise AdminError(f"could not ask Prometheus: {error}") from error
    return series
