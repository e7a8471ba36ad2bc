"""Whether every record has arrived once: what producers and consumers tell of the records that they wrote and read.

Counts alone cannot say it: a lost record and one that stands twice cancel each other out. Kafka numbers the records of
a partition, and clients learn the numbers, so they tell offsets, as runs: `orders-3, ten past nine: 1,000 to 1,499`.

- `offset_ranges`: runs of offsets by topic, partition and bucket of the records' own time.
- `reports`: what a client writes to the topic `__audit_counts`, so that any language can.
- `clients`: confluent-kafka's producer and consumer, with the counting around them.

These modules need nothing but the standard library.
"""
