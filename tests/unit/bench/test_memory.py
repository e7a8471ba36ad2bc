import mmap

from bench import memory
from bench.memory import BLOCK_BYTES, Pool


def test_a_pool_holds_one_page_of_each_block() -> None:
    blocks = 4
    with Pool(blocks * BLOCK_BYTES) as pool:
        firsts = [pool._map[block * BLOCK_BYTES] for block in range(blocks)]
        freed = [pool._map[block * BLOCK_BYTES + mmap.PAGESIZE] for block in range(blocks)]
    assert firsts == [1] * blocks
    assert freed == [0] * blocks  # a page that was freed reads as zeros


def test_the_pool_leaves_most_of_the_machine_alone() -> None:
    assert 0 < memory.pool_bytes() < 2**50
