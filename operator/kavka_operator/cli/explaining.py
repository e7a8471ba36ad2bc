"""`kavka explain quota`: which of the eight levels wins for a client, from what the running cluster says now."""

from pathlib import Path

from kavka_operator.api.quantity import spell
from kavka_operator.api.quota import AnyEntity, ClientQuota, entity_of
from kavka_operator.api.table import aligned
from kavka_operator.cli.asking import asking
from kavka_operator.cli.words import CommandError, complain, say, state_directory, the_cluster
from kavka_operator.domain.entities import entity_text
from kavka_operator.kafka.admin import AdminError
from kavka_operator.platform.local.layout import Layout
from kavka_operator.platform.local.store import Store
from kavka_operator.quota.shadows import Explanation, explain, level_words


def explain_quota(user: str, client_id: str, cluster: str | None, namespace: str, chosen_state: Path | None) -> int:
    """Print which quota applies to a client; the exit code."""
    try:
        layout = the_cluster(state_directory(chosen_state), namespace, cluster)
        limits = _limits(layout)
    except (CommandError, AdminError) as error:
        return complain(error)
    owners = {
        entity_of(resource.spec.entity): resource.name
        for resource in Store(layout).all()
        if isinstance(resource, ClientQuota)
    }
    found = explain(limits, user, client_id)
    say(f'user "{user}", client id "{client_id}", on each broker of {layout.cluster}:')
    if not any(explanation.effective for explanation in found):
        say("  nothing limits this client")
    for explanation in found:
        if explanation.effective is not None:
            say("\n" + explained(explanation, owners))
    return 0


def explained(explanation: Explanation, owners: dict[AnyEntity, str]) -> str:
    """The text for one quota key: the limit that applies, and the eight levels, the most specific first."""
    effective = explanation.effective
    assert effective is not None, "only keys that limit the client are explained"
    rows = [["", "LEVEL", "ENTITY", "LIMIT", "RESOURCE"]]
    for level, entity, limit in explanation.order:
        mark = "->" if entity == effective.entity else ""
        rows.append([mark, f"{level} {level_words(level)}", entity_text(entity), _shown(limit), owners.get(entity, "")])
    head = f"{explanation.key} {spell(effective.limit)}: level {effective.level}, {level_words(effective.level)}"
    hidden = f", hides {', '.join(entity_text(entity) for entity in effective.shadows)}" if effective.shadows else ""
    return f"{head}{hidden}\n" + "\n".join(f"  {line.rstrip()}" for line in aligned(rows).splitlines())


def _shown(limit: float | None) -> str:
    return "-" if limit is None else spell(limit)


def _limits(layout: Layout) -> dict[AnyEntity, dict[str, float]]:
    with asking(layout) as admin:
        return {entity: dict(values) for entity, values in admin.look(()).quotas.items()}
