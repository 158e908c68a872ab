"""Groups of short texts are found among those that came before: the same groups, whatever texts look like."""

import random

import pyarrow as pa
import pytest

from tests.aggregate.group_oracle import input_table, make_calls, oracle, rows_of, single, two_phases

CALLS = make_calls(("count_all", "sum", "first", "max"))
#: texts that share their first and last bytes, or all bytes but their number, or differ in one byte in the middle
ALIKE = [
    *("a" * size for size in range(24)),
    *(f"{'a' * begin}b{'a' * (size - begin - 1)}" for size in range(1, 20) for begin in range(size)),
    *("\0" * size for size in range(1, 20)),
]
TEXTS = {
    "few": ["1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW"],
    "alike": ALIKE,
    "hundreds": [f"id{number:03}" for number in range(400)],
    "more than places": [str(number) for number in range(9000)],
    "long": [f"{number % 7} {'x' * 30}" for number in range(40)],
    "long among short": ["yes", "no", "a text that is longer than sixteen bytes"],
    "with null": ["yes", "no", None],
}


def table_of(texts, rows=20_000, key_type=None):
    chosen = random.Random(11)
    keys = [chosen.choice(texts) for _ in range(rows)]
    columns = [keys, *([n % 89 for n in range(rows)] for _ in range(3))]
    return input_table(("key",), [key_type or pa.string()], CALLS, [None, *[pa.int64()] * 3], columns)


@pytest.mark.parametrize("batch_rows", [700, 5000])
@pytest.mark.parametrize("texts", TEXTS)
def test_texts_group_like_the_oracle(workshop, texts, batch_rows):
    table = table_of(TEXTS[texts])
    result, _ = single(workshop, 600, table, ("key",), CALLS, batch_rows)
    assert rows_of(result) == oracle(table, ("key",), CALLS)


@pytest.mark.parametrize("pages", [6, 12, 30])
@pytest.mark.parametrize("texts", ["few", "alike", "more than places"])
def test_groups_that_were_written_out_are_not_found_again(workshop, texts, pages):
    table = table_of([f"{text}{n}"[-14:] for text in TEXTS[texts][:300] for n in range(30)])
    result, _, _ = two_phases(workshop, pages, table, ("key",), CALLS)
    assert rows_of(result) == oracle(table, ("key",), CALLS)


@pytest.mark.parametrize("texts", ["few", "alike"])
def test_groups_that_go_at_every_sixteenth_are_not_found_again(workshop, texts):
    table = table_of(TEXTS[texts], 4000)
    result, operator = single(workshop, 600, table, ("key",), CALLS, force_spill=True)
    assert rows_of(result) == oracle(table, ("key",), CALLS)
    assert (operator.spilled_bytes > 0) == (texts == "alike")


def test_slices_and_other_texts_between(workshop):
    parts = [TEXTS["few"], ALIKE, TEXTS["long"], TEXTS["few"], TEXTS["with null"], TEXTS["few"]]
    table = pa.concat_tables([table_of(part, 3000).slice(5) for part in parts]).combine_chunks()
    result, _ = single(workshop, 600, table, ("key",), CALLS, 1300)
    assert rows_of(result) == oracle(table, ("key",), CALLS)


@pytest.mark.parametrize("key_type", [pa.large_string(), pa.binary()])
def test_bytes_and_large_texts(workshop, key_type):
    table = table_of(["yes", "no", ""] if key_type != pa.binary() else [b"yes", b"no", b"\0", b""], 5000, key_type)
    result, _ = single(workshop, 600, table, ("key",), CALLS, 900)
    assert rows_of(result) == oracle(table, ("key",), CALLS)
