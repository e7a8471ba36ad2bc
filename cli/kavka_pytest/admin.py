"""What the fixtures ask of Kafka's admin API, as a program of its own: `python -m kavka_pytest.admin`.

So warnings of the client (it leaves the socket of a broker that died) are none of the test's, whose process they were.
"""

import json
import sys
import time
from typing import Any, Final

import kafka.errors
from kafka.admin import KafkaAdminClient, NewTopic

REQUEST_TIMEOUT_MS: Final = 5_000
ANSWER_SECONDS_MAX: Final = 60.0
AGAIN_SECONDS: Final = 0.2
NOT_NOW: Final = (kafka.errors.RetriableError, kafka.errors.KafkaTimeoutError)
"""A test has killed or paused the broker that the client had chosen: another one answers."""


class NoLeaderError(Exception):
    """A partition has no leader at the moment."""


def answer(admin: KafkaAdminClient, question: dict[str, Any]) -> Any:
    """Make a topic, or tell the leaders of one. Raises NoLeaderError, and ValueError for another question."""
    match question:
        case {"create": name, "partitions": partitions, "configs": configs}:
            try:
                admin.create_topics([NewTopic(name, partitions, -1, topic_configs=configs)])
            except kafka.errors.TopicAlreadyExistsError:
                if not question.get("again"):  # otherwise the answer to the first request was lost
                    raise
            return None
        case {"leaders": name}:
            (found,) = admin.describe_topics([name])
            leaders = {str(entry["partition_index"]): entry["leader_id"] for entry in found["partitions"]}
            if not leaders or min(leaders.values()) < 0:
                raise NoLeaderError(f"a partition of {name} has no leader")
            return leaders
    raise ValueError(f"unknown question: {question}")


def ask(bootstrap: str, question: dict[str, Any]) -> Any:
    """The answer, of whichever broker gives it in time. Raises what was in the way until then."""
    deadline = time.monotonic() + ANSWER_SECONDS_MAX
    while True:
        client = None
        try:
            client = KafkaAdminClient(bootstrap_servers=bootstrap.split(","), request_timeout_ms=REQUEST_TIMEOUT_MS)
            return answer(client, question)
        except (*NOT_NOW, NoLeaderError):
            if time.monotonic() > deadline:
                raise
            question = {**question, "again": True}
            time.sleep(AGAIN_SECONDS)
        finally:
            if client is not None:
                client.close()


if __name__ == "__main__":
    sys.stdout.write(json.dumps(ask(sys.argv[1], json.loads(sys.argv[2]))))
