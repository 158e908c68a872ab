"""Sizes of memory as people write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.config.sizes import format_size, parse_size
from engine.errors import ConfigurationError


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("16mb", 16 << 20),
        ("1728m", 1728 << 20),
        (" 10 GB ", 10 << 30),
        ("1.5g", 3 << 29),
        ("64KiB", 64 << 10),
        ("32768", 32768),
        ("7b", 7),
        ("7 bytes", 7),
        ("2tb", 2 << 40),
        (4096, 4096),
        ("0", 0),
        ("1.3k", 1331),
    ],
)
def test_sizes_are_read_as_people_write_them(text: str | int, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "mb", "-1mb", "16 parsecs", "1,5g", "1e6", "16mbb", "16bb", None, True, -5, 1.5])
def test_anything_else_names_key_and_text(text: object) -> None:
    with pytest.raises(ConfigurationError, match=r"some.key: .*not a size"):
        parse_size(text, "some.key")  # type: ignore[arg-type]


def test_a_size_without_a_key_is_named_alone() -> None:
    with pytest.raises(ConfigurationError, match=r"^'mb' is not a size"):
        parse_size("mb")


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0b"), (1023, "1023b"), (1024, "1kb"), (1536, "1.5kb"), (3 << 29, "1.5gb"), (1 << 40, "1tb"), (1025, "1kb")],
)
def test_sizes_are_written_as_people_write_them(size: int, text: str) -> None:
    assert format_size(size) == text


@given(st.integers(0, 1023), st.sampled_from([1, 1 << 10, 1 << 20, 1 << 30, 1 << 40]))
def test_round_sizes_come_back_exactly(count: int, factor: int) -> None:
    assert parse_size(format_size(count * factor)) == count * factor
