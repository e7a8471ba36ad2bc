"""Produce (0): append record batches to the partitions that this broker leads. `replica.writing` appends and waits.

- Each partition succeeds or fails by itself; a failed one never holds up another.
- acks=1 is answered when the leader's log has the records, acks=all when every in-sync replica has them or after
  `timeout_ms` with REQUEST_TIMED_OUT, acks=0 not at all; an acks=0 request that fails closes the connection, the only
  way left to tell.
- Where `flush.messages` wants a sync, a replica has what it has synced. acks=0 waits for that too: else nothing would
  hold its sender back.
- Internal topics take records from nodes only: a stray batch in `__consumer_offsets` would cost groups their offsets,
  one in `__audit_events` would tell what nobody did. The client id `__admin_client` is asked for, as in Apache Kafka,
  and is no right by itself: with an authorizer the cluster's CLUSTER_ACTION is needed beside WRITE of the topic
  (`access/records`), without one the listener between the brokers.
- A transaction's first batch in a partition waits for its coordinator's word that the partition is part of it
  (`transaction_admission`); requests of one transactional id are written in the order in which they came.
- Of a partition that is named more than once the last batch counts, as in Apache Kafka.
- A batch that takes long to make ready (another codec, keys of a compacted topic) is made so by a thread, and what
  comes behind it on its connection waits (`batch_preparation`).
- A retried batch of an idempotent producer is answered with the offsets it got the first time.
- While the audit trail has no room, and its policy is to reject, each partition is NOT_ENOUGH_REPLICAS
  (`audit_backpressure`).
- The answer names `throttle_time_ms`; a client over its quota, or a topic's, is muted from the charge on. Topics are
  charged in slices where the batches are many.
Versions: flexible from 9; topic ids from 13. Versions 0-2 are advertised but not served (KAFKA-18659).
"""

from kavka_broker.protocol.messages.produce_request import ProduceRequest
from kavka_broker.protocol.messages.produce_response import ProduceResponse
from kavka_broker.replica.writing.produce import Produce, Produced
from kavka_broker.request.broker import Broker, Client
from kavka_broker.request.produce_policy import ProducePolicy
from kavka_broker.request.registry import api


@api(ProduceRequest, ProduceResponse, versions=(3, 13), advertised=(0, 13), pipelined=True)
def produce(request: ProduceRequest, broker: Broker, client: Client) -> Produced:
    client.is_exempt = request.acks == 0  # its client would not hear of a delay
    return Produce(request, broker.writes, client, ProducePolicy(broker, client)).run()
