"""Memory segments: checked bounds, and bytes that come back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import EngineError, SegmentBoundsError
from engine.memory.manager import MemoryManager
from engine.memory.segment import MemorySegment

SIZE = 256


@given(st.integers(-5, SIZE + 5), st.binary(max_size=SIZE + 5))
def test_bytes_agree_with_a_bytearray(offset: int, data: bytes) -> None:
    segment, oracle = MemorySegment(SIZE), bytearray(SIZE)
    segment.put_bytes(0, bytes(SIZE))
    if offset >= 0 and offset + len(data) <= SIZE:
        segment.put_bytes(offset, data)
        oracle[offset : offset + len(data)] = data
    else:
        with pytest.raises(SegmentBoundsError):
            segment.put_bytes(offset, data)
    assert segment.get_bytes(0, SIZE) == bytes(oracle)


def test_the_edges_are_inside_and_one_more_is_outside() -> None:
    segment = MemorySegment(16)
    segment.put_bytes(12, b"last")
    assert segment.get_bytes(12, 4) == b"last"
    assert segment.get_bytes(16, 0) == b""
    for offset, count in [(13, 4), (16, 1), (-1, 1), (0, 17), (2**62, 2**62)]:
        with pytest.raises(SegmentBoundsError) as caught:
            segment.get_bytes(offset, count)
        assert isinstance(caught.value, IndexError) and isinstance(caught.value, EngineError)
        assert (caught.value.offset, caught.value.count, caught.value.size) == (offset, count, 16)
    with pytest.raises(SegmentBoundsError):
        segment.get_bytes(0, -1)


def test_a_memoryview_shares_the_bytes_and_pins_a_managed_segment() -> None:
    manager = MemoryManager(1 << 20)
    (segment,) = manager.allocate("test", 1)
    view = memoryview(segment)
    assert view.nbytes == len(segment) == 32768 and not view.readonly
    view[10:13] = b"abc"
    assert segment.get_bytes(10, 3) == b"abc"
    with pytest.raises(BufferError):
        manager.release("test", [segment])
    view.release()
    manager.release("test", [segment])
    assert (len(segment), segment.address) == (0, 0)
    with pytest.raises(SegmentBoundsError):
        segment.get_bytes(0, 1)
    with pytest.raises(BufferError):
        memoryview(segment)
    with pytest.raises(ValueError, match="released"):
        manager.release("test", [segment])
    manager.close()


@pytest.mark.parametrize("size", [0, -2])
def test_a_segment_needs_a_size(size: int) -> None:
    with pytest.raises(ValueError, match="at least one"):
        MemorySegment(size)
