"""What no new topic may pass, whoever creates it. Configs that such a topic is made from keep within the same bounds:
otherwise a broker would start that can never create its internal topics.
"""

from typing import Final

#: The bound on partitions of one request: more make a batch of the metadata log too large (Kafka's own bound).
PARTITIONS_PER_REQUEST_MAX: Final = 10_000
#: CreateTopics has the replication factor as a short.
REPLICATION_FACTOR_MAX: Final = 2**15 - 1
#: Since Apache Kafka 4.0 (KIP-1030).
SEGMENT_BYTES_MIN: Final = 1_048_576
#: The largest record that Java makes room for (Apache Kafka 4.4).
RECORD_BYTES_MAX: Final = 2**31 - 9
