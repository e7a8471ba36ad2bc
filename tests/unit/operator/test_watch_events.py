"""What the watch asks the API server for, and what it makes of the answers."""

import kopf
import pytest

from kavka_operator.process import handlers


@pytest.mark.parametrize(
    ("group", "plural"),
    [("", "pods"), ("", "persistentvolumeclaims"), ("apps", "statefulsets"), ("kavka.dev", "topics")],
)
def test_the_api_server_sends_of_pods_and_their_like_only_those_of_nodes(group: str, plural: str) -> None:
    settings = kopf.OperatorSettings()
    handlers.select(settings)
    resource = kopf.Resource(group, "v1", plural, kind=plural, singular=plural, namespaced=True)
    asked = list(settings.watching.label_selectors.collect(resource))
    ours = ["kavka.dev/cluster,app.kubernetes.io/managed-by=kavka-operator"]
    assert asked == ([] if group == "kavka.dev" else ours)
