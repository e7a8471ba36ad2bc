"""Before a reader of committed records gets transactions whose index a start has found, the index is compared.

A file that was lost would hand out aborted records as committed ones. The reader waits like one for whom there is
nothing new, and is woken when it is known what was aborted.
"""

import asyncio

from kavka_broker.logs import get
from kavka_broker.loop.tasks import watch
from kavka_broker.protocol.errors import BrokerError, ErrorCode, ProtocolViolation
from kavka_broker.replica.leading.partition import Partition
from kavka_broker.storage.transaction_index_proof import prove

log = get("replica")


def is_proven(partition: Partition, offset: int) -> bool:
    """Whether the aborted transactions from `offset` on are known. An index in doubt is checked from now on.

    Records appended since the start are in the indexes. Raises KAFKA_STORAGE_ERROR or CORRUPT_MESSAGE where that cannot
    be found out, as a read of a damaged batch does.
    """
    if not partition.log.segments.has_doubted or offset >= partition.log.found_end_offset:
        return True
    if partition.log.segments.proof_problem:
        code = ErrorCode.CORRUPT_MESSAGE if len(partition.isr) < 2 else ErrorCode.KAFKA_STORAGE_ERROR
        raise BrokerError(code, f"{partition}: {partition.log.segments.proof_problem}")
    if partition.proof is None:
        partition.proof = watch(asyncio.get_running_loop().create_task(_prove(partition), name=f"prove {partition}"))
    return False


async def _prove(partition: Partition) -> None:
    try:
        for _ in prove(partition.log):
            await asyncio.sleep(0)
    except (OSError, ProtocolViolation) as problem:
        log.error("transactions.not_read", partition=str(partition), reason=str(problem))
        partition.log.segments.proof_problem = str(problem)
        partition.found_damaged()
    finally:
        partition.proof = None
        partition.waiters.interrupt()
