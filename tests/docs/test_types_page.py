"""The page of types says what the table of types says."""

from docs.generators.types_page import types_page
from tests.types_table.sampled_types import FOREIGN, TYPES, plain


def _rows():
    lines = types_page().splitlines()
    return [line for line in lines if line.startswith("| `")]


def test_every_plain_type_is_in_one_row():
    for array in {**TYPES, **FOREIGN}.values():
        if plain(array.type) == array.type:
            assert sum(f"`{array.type}`" in line.split(" | ")[0] for line in _rows()) == 1, array.type


def test_types_that_are_kept_as_others_name_them():
    (row,) = [line for line in _rows() if "`date64[ms]`" in line.split(" | ")[0]]
    assert "`date32[day]`" in row
    assert "`timestamp[ns]`" in row
    (row,) = [line for line in _rows() if line.startswith("| `month_day_nano_interval`")]
    assert row.count("–") == 7
