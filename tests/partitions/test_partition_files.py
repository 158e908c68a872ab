"""How many partitions a memory has, and how large the blocks of their files are."""

import pytest

from engine.partitions.partition_files import partitions_of_memory


@pytest.mark.parametrize(
    ("pages", "page_size", "count"), [(6, 32768, 16), (16, 32768, 64), (64, 4096, 16), (6, 4096, 4)]
)
def test_small_memory_is_parted_into_small_blocks(pages, page_size, count):
    assert partitions_of_memory(pages, page_size) == (count, 4096)
