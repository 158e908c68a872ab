"""A row: a tuple whose items have names."""

import dis
import pickle

import pytest

from engine.functions.function_error import message_of
from engine.functions.row import Row, row_class
from engine.functions.row_base import RowBase, item_member

ROW = row_class(("a", "count", "two words", "class"))((1, 2, 3, 4))


def test_items_are_reached_by_name_by_number_and_by_slice():
    assert (ROW.a, ROW.count, ROW["two words"], ROW["class"], ROW[0], ROW[-1], ROW[True]) == (1, 2, 3, 4, 1, 4, 2)
    assert ROW[1:3] == (2, 3)
    assert tuple(ROW) == ROW == (1, 2, 3, 4)
    assert hash(ROW) == hash((1, 2, 3, 4))
    assert isinstance(ROW, Row)
    assert issubclass(Row, RowBase)


@pytest.mark.parametrize("name", ["missing", "Ä", ""])
def test_a_name_that_is_none_is_refused_with_those_that_are(name):
    with pytest.raises(KeyError, match="the row has a, count, two words, class"):
        ROW[name]
    with pytest.raises(AttributeError) as error:
        getattr(ROW, name)
    assert message_of(error.value) == f"'{name}'; the row has a, count, two words, class"


@pytest.mark.parametrize("name", ["_asdict", "asDict", "items"])
def test_names_of_other_rows_and_of_dicts_say_what_to_write(name):
    with pytest.raises(AttributeError) as error:
        getattr(ROW, name)
    assert message_of(error.value) == f"'{name}'; the row has a, count, two words, class; write row.asdict()"


def test_numbers_that_are_none_and_other_keys_are_refused_as_by_a_tuple():
    for key in (4, -5, 2**70):
        with pytest.raises(IndexError):
            ROW[key]
    with pytest.raises(TypeError):
        ROW[1.0]
    with pytest.raises(AttributeError):
        ROW.a = 5
    with pytest.raises(AttributeError):
        ROW.other = 5


def test_a_row_has_as_many_items_as_its_class_has_names():
    for values in ((1, 2, 3), (1, 2, 3, 4, 5), ()):
        with pytest.raises(ValueError, match=f"a row of 4 values, not {len(values)}"):
            type(ROW)(values)
    with pytest.raises(TypeError):
        tuple.__new__(type(ROW), (1,))
    with pytest.raises(TypeError):
        type(ROW).a.__get__((1, 2, 3, 4))
    for position in (-1, 4):
        with pytest.raises(ValueError, match="no member"):
            item_member(type(ROW), "other", position)


def test_the_interpreter_reads_attributes_of_rows_in_one_instruction():
    def read(row):
        return row.a

    for _ in range(100):
        read(ROW)
    names = {each.opname for each in dis.get_instructions(read, adaptive=True)}
    assert "LOAD_ATTR_SLOT" in names


def test_rows_are_pickled_with_their_names():
    again = pickle.loads(pickle.dumps(ROW))
    assert again == ROW
    assert again["two words"] == 3
    assert type(again) is type(ROW)


def test_rows_live_and_end_as_other_objects_do():
    rows = [row_class(("x",))((object(),)) for _ in range(10_000)]
    nested = None
    for row in rows:
        nested = row_class(("x", "y"))((nested, row))
    del rows, row, nested
