"""UpdateFeatures (57): raise or lower what the whole cluster has agreed to use.

- INVALID_UPDATE_VERSION where somebody does not know the level, or where a downgrade was not asked for.
- Of several changes all are made or none. Up to version 1 the answer repeats the error for each feature.
- `validate_only` (from 1) says what would happen, and nothing does.
- Answered when the levels are committed, so `timeout_ms` is never reached.
Versions: flexible throughout; the kind of change from 1, before that "may it be lowered".
"""

from kavka_broker.core.decision import Decision
from kavka_broker.core.metadata.decide.election_policy import policy_of
from kavka_broker.core.metadata.decide.features import Direction, UpdateFeature, update_features
from kavka_broker.core.metadata.image.metadata import Metadata
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.messages.update_features_request import FeatureUpdateKey, UpdateFeaturesRequest
from kavka_broker.protocol.messages.update_features_response import UpdatableFeatureResult, UpdateFeaturesResponse
from kavka_broker.request.broker import Broker, Client
from kavka_broker.request.registry import BOTH, SMALL_BYTES_MAX, api

KINDS_FROM_VERSION = 1
NO_RESULTS_FROM_VERSION = 2


@api(UpdateFeaturesRequest, UpdateFeaturesResponse, versions=(0, 2), on=BOTH, forwarded=True, bytes_max=SMALL_BYTES_MAX)
async def update(request: UpdateFeaturesRequest, broker: Broker, client: Client) -> UpdateFeaturesResponse:
    commands = [command(update, client.version) for update in request.feature_updates]
    policy = policy_of(broker.config)

    def decide(metadata: Metadata, _: int) -> Decision[None]:
        decision = update_features(metadata, commands, policy)
        return Decision([], None) if request.validate_only else decision

    try:
        await broker.active.submit(decide)
    except BrokerError as refusal:
        if refusal.code is ErrorCode.NOT_CONTROLLER:
            raise
        return answer(request, client, refusal.code, refusal.message)
    return answer(request, client, ErrorCode.NONE, None)


def command(asked: FeatureUpdateKey, version: int) -> UpdateFeature:
    direction = asked.upgrade_type
    if version < KINDS_FROM_VERSION and asked.allow_downgrade:
        direction = Direction.SAFE_DOWNGRADE
    return UpdateFeature(asked.feature, asked.max_version_level, direction)


def answer(
    request: UpdateFeaturesRequest, client: Client, code: ErrorCode, message: str | None
) -> UpdateFeaturesResponse:
    results = []
    if client.version < NO_RESULTS_FROM_VERSION:
        results = [UpdatableFeatureResult(update.feature, code, message) for update in request.feature_updates]
    return UpdateFeaturesResponse(error_code=code, error_message=message, results=results)
