"""The handlers, one a kind. Each decodes nothing by itself: the desk does, and says what to write back."""

from typing import Any

import kopf

from kavka_operator.api import GROUP, VERSION
from kavka_operator.handlers.desk import Desk


@kopf.on.event(GROUP, VERSION, "kafkaclusters")
async def on_cluster(event: kopf.RawEvent, body: kopf.Body, patch: kopf.Patch, memo: kopf.Memo, **_: Any) -> None:
    """A KafkaCluster was made, changed, looked at again, or is gone."""
    await _hand_in(memo.desk, event, body, patch)


@kopf.on.event(GROUP, VERSION, "topics")
async def on_topic(event: kopf.RawEvent, body: kopf.Body, patch: kopf.Patch, memo: kopf.Memo, **_: Any) -> None:
    """A Topic was made, changed, looked at again, or is gone."""
    await _hand_in(memo.desk, event, body, patch)


@kopf.on.event(GROUP, VERSION, "clientquotas")
async def on_quota(event: kopf.RawEvent, body: kopf.Body, patch: kopf.Patch, memo: kopf.Memo, **_: Any) -> None:
    """A ClientQuota was made, changed, looked at again, or is gone."""
    await _hand_in(memo.desk, event, body, patch)


async def _hand_in(desk: Desk, event: kopf.RawEvent, body: kopf.Body, patch: kopf.Patch) -> None:
    for part, value in (await desk.hand_in(body, gone=event["type"] == "DELETED")).items():
        patch.setdefault(part, {}).update(value)
