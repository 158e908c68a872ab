"""Batches in memory that two processes share."""

import os

import pyarrow as pa
import pytest

from engine.functions.shared_batches import SharedBatches


@pytest.fixture
def memory():
    shared = SharedBatches.create("test")
    yield shared
    shared.close()


def batch_of(size_bytes, index=0):
    return pa.record_batch({"n": [index, None], "blob": [os.urandom(size_bytes), b""]})


def held_bytes(memory):
    return os.fstat(memory.descriptor).st_blocks * 512


@pytest.mark.parametrize("size_bytes", [10, 9_000_001, 20, 17_000_000])
def test_what_is_written_is_read(memory, size_bytes):
    for index in range(3):
        batch = batch_of(size_bytes, index)
        assert memory.read(memory.write(batch), copy=True) == batch


def test_a_very_large_batch_is_given_back_while_it_is_copied_out(memory):
    small, large = batch_of(100_000), batch_of(9_000_000)
    memory.read(memory.write(small), copy=True)
    assert held_bytes(memory) > 100_000
    size_bytes = memory.write(large)
    assert held_bytes(memory) >= 9_000_000
    assert memory.read(size_bytes, copy=True) == large
    assert held_bytes(memory) < 100_000
    assert memory.read(memory.write(small), copy=True) == small


def test_a_lent_batch_stays_where_it_is(memory):
    large = batch_of(9_000_000)
    lent = memory.read(memory.write(large), copy=False)
    assert lent == large
    assert held_bytes(memory) >= 9_000_000
