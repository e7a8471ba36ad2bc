"""Waits for the controller of StatefulSets to hear of a template.

It works from a copy of what the API server has. A pod that is deleted before that copy has the new template is made
again of the old one, which the operator would not notice until the next look.
"""

import asyncio
from typing import Final

from kavka_operator.api.stored_resources import part
from kavka_operator.platform.kubernetes.live.api import Api
from kavka_operator.platform.kubernetes.objects.names import Document, name_of, uid_of

LOOKS: Final = 40
LOOK_SECONDS: Final = 0.05


async def is_observed(api: Api, applied: Document) -> bool:
    """Whether pods of a StatefulSet are made of the template that was applied; waits about two seconds for that.

    `status.observedGeneration` tells it. Raises ApiError.
    """
    wanted = part(applied, "metadata").get("generation", 0)
    seen: Document | None = applied
    for _ in range(LOOKS):
        if seen is None or uid_of(seen) != uid_of(applied):
            return False
        if part(seen, "status").get("observedGeneration", 0) >= wanted:
            return True
        await asyncio.sleep(LOOK_SECONDS)
        seen = await api.find("StatefulSet", applied["metadata"]["namespace"], name_of(applied))
    return False
