"""Record batches: the bytes that producers write, logs hold and consumers read.

A batch (format v2, the only one that Kafka 4 knows) is a header of 61 bytes and records packed behind it, perhaps
compressed. The broker lives on the header: it patches the base offset and the leader epoch in place (both lie
outside the CRC), checks the rest, and passes the records on as they came. `batch` is that header; `record` looks
inside, for the few who must; `compression` is the codecs; `control` is the batches that no client sees.
"""
