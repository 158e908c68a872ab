"""What was fetched of a file reads as the file does, where it is there; what comes later counts; a gap is zeros."""

import random

import pytest

from engine.parquet.fetched_bytes import FetchedBytes
from engine.parquet.page_sizes import page_sizes


def made(*parts):
    found = FetchedBytes()
    for position, content in parts:
        found.add(position, content)
    found.seal()
    return found


def test_parts_are_read_at_their_places_with_zeros_between():
    found = made((10, b"abc"), (13, b"defg"), (20, b"xyz"))
    assert found.read_at(10, 7) == b"abcdefg"
    assert found.read_at(12, 3) == b"cde"
    assert found.read_at(8, 17) == b"\0\0abcdefg\0\0\0xyz\0\0"
    assert found.read_at(100, 2) == b"\0\0"


def test_what_is_added_later_counts():
    found = made((0, b"0123456789"), (3, b"abc"))
    assert found.read_at(0, 10) == b"012abc6789"
    found.add(5, b"XXXXXXXX")
    assert found.read_at(0, 10) == b"012abc6789", "as it was sealed"
    found.seal()
    assert found.read_at(0, 13) == b"012abXXXXXXXX"
    assert b"".join(bytes(part) for _, part in found.parts_of()) == b"012abXXXXXXXX"


def test_random_parts_agree_with_a_plain_file():
    rnd = random.Random(7)
    for _ in range(200):
        plain, found = bytearray(260), FetchedBytes()
        for _ in range(rnd.randrange(1, 12)):
            position, content = rnd.randrange(150), bytes(rnd.choices(range(256), k=rnd.randrange(0, 50)))
            found.add(position, content)
            plain[position : position + len(content)] = content
        found.seal()
        for _ in range(20):
            position, size = rnd.randrange(200), rnd.randrange(60)
            assert found.read_at(position, size) == plain[position : position + size]


def test_what_was_cleared_reads_as_nothing_and_other_sources_are_refused():
    found = made((0, b"abc"))
    found.clear()
    assert (found.read_at(0, 3), found.parts_of()) == (b"\0\0\0", [])
    with pytest.raises(TypeError):
        page_sizes("a path", 0, 10, 1, 100, 0)
