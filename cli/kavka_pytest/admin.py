"""What the fixtures ask of Kafka's admin API, as a program of its own: `python -m kavka_pytest.admin`.

So warnings of the client (it leaves the socket of a broker that died) are none of the test's, whose process they were.
"""

import json
import sys
from typing import Any

from kafka.admin import KafkaAdminClient, NewTopic


def answer(admin: KafkaAdminClient, question: dict[str, Any]) -> Any:
    """Make a topic, or tell the leaders of one by partition. Raises ValueError for another question."""
    match question:
        case {"create": name, "partitions": partitions, "configs": configs}:
            admin.create_topics([NewTopic(name, partitions, -1, topic_configs=configs)])
            return None
        case {"leaders": name}:
            (found,) = admin.describe_topics([name])
            return {str(entry["partition_index"]): entry["leader_id"] for entry in found["partitions"]}
    raise ValueError(f"unknown question: {question}")


if __name__ == "__main__":
    bootstrap, text = sys.argv[1:]
    client = KafkaAdminClient(bootstrap_servers=bootstrap.split(","))
    try:
        sys.stdout.write(json.dumps(answer(client, json.loads(text))))
    finally:
        client.close()
