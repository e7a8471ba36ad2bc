"""The image of the brokers changes under load; one that does not start stops at the first broker."""

from e2e.cluster_namespace import Scene
from e2e.images import BROKEN_TAG, LAST_WORDS, NEXT_TAG, TAG
from e2e.kubectl import until
from e2e.release import BROKER_IMAGE


def test_another_image_is_rolled_out_under_load(loaded: Scene) -> None:
    before = loaded.pods()
    loaded.wants(image=f"{BROKER_IMAGE}:{NEXT_TAG}")
    until(lambda: len(loaded.changed(before)) == 3)
    loaded.until_ready()
    assert loaded.images() == {f"{BROKER_IMAGE}:{NEXT_TAG}"}
    loaded.has_lost_nothing()


def test_an_image_that_does_not_start_stops_at_the_first_broker_and_can_be_mended(loaded: Scene) -> None:
    before = loaded.pods()
    loaded.wants(image=f"{BROKER_IMAGE}:{BROKEN_TAG}")
    until(lambda: loaded.words("Stalled").startswith("RolloutStopped"))
    assert LAST_WORDS in loaded.words("Stalled")
    assert len(loaded.changed(before)) == 1
    loaded.until_more()

    loaded.wants()  # the operator's own image, as at first
    loaded.until_ready()
    assert loaded.images() == {f"{BROKER_IMAGE}:{TAG}"}
    assert len(loaded.changed(before)) == 1, "those that never had the broken image run on"
    loaded.has_lost_nothing()
