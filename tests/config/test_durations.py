"""Durations as people write them."""

import pytest

from engine.config.durations import duration_text, parse_duration_ms, parse_interval_ms
from engine.errors import ConfigurationError


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("100 ms", 100),
        ("250", 250),
        (" 1.5 S ", 1_500),
        ("2sec", 2_000),
        ("5 min", 300_000),
        ("5m", 300_000),
        ("1 h", 3_600_000),
        ("2 d", 172_800_000),
        ("0.4 ms", 0),
    ],
)
def test_durations_are_read_as_people_write_them(text: str, milliseconds: int) -> None:
    assert parse_duration_ms(text) == milliseconds
    assert parse_interval_ms(text) == milliseconds


@pytest.mark.parametrize("text", ["", "s", "-1 s", "-1", "5 parsecs", "1,5 s", "1 s 2"])
def test_anything_else_is_named(text: str) -> None:
    with pytest.raises(ConfigurationError, match=f"^'{text}' is not a duration: write a number and ms, s, min, h or"):
        parse_duration_ms(text)


def test_an_interval_of_minus_one_is_never() -> None:
    assert (parse_interval_ms("-1"), parse_interval_ms(" -1 ")) == (-1, -1)
    with pytest.raises(ConfigurationError, match="is not a duration"):
        parse_interval_ms("-2")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s"), (0.5, "0.5 s"), (59, "59 s"), (60, "1 min"), (61, "61 s"), (90, "90 s"), (600.0, "10 min")],
)
def test_durations_are_written_in_minutes_where_it_is_some(seconds: float, text: str) -> None:
    assert duration_text(seconds) == text
