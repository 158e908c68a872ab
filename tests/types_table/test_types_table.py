"""Each type on each way: its values come out as they went in, or as the table says."""

import itertools
import re

import pytest

from engine.errors import DataError, NotYetSupportedError, PlanError, SchemaError
from tests.types_table.paths import OF_AVRO, SPILLING, WAYS, Load, expected
from tests.types_table.sampled_types import FOREIGN, TYPES
from tests.types_table.table import ENDED, KEPT, NAN, OF_NAMED_TYPES, REFUSED

_NUMBERS = itertools.count()
#: what an error advises, in one of these words
_ADVICE = re.compile(r"\b(cast|drop|leave|take|read it as|use|write|encode)\b")


@pytest.fixture
def environment(open_environment):
    return open_environment()


@pytest.fixture
def spilling(open_environment):
    return open_environment(**{"debug.force-spill": True})


def _rows_of(way, names, environment, folder):
    place = folder / str(next(_NUMBERS))
    place.mkdir()
    return WAYS[way][0](Load(names, environment, place)).sort_by("k")


def _with_nan(values):
    return str(values).replace("None", "nan")


def _difference(way, name, table):
    """Return how a column differs from what it should be, None: not."""
    found, wanted = table[name].combine_chunks(), expected(name, WAYS[way][1])
    kept = KEPT.get(way, {}).get(name, wanted.type)
    if found.type != kept:
        return f"is {found.type}, not {kept}"
    if way == "map_batches_of_numpy" and name in NAN:
        return None if _with_nan(found.to_pylist()) == _with_nan(wanted.to_pylist()) else found.to_pylist()
    same = wanted if found.type == wanted.type else wanted.cast(kept)
    return None if found.equals(same) else f"{found.to_pylist()}, not {same.to_pylist()}"


def _wrong(way, names, environment, folder):
    """Return what is wrong by type; where the job of all fails, each has one of its own."""
    try:
        table = _rows_of(way, names, environment, folder)
    except Exception as error:
        if len(names) == 1:
            return {names[0]: repr(error)}
        return {name: wrong for one in names for name, wrong in _wrong(way, [one], environment, folder).items()}
    return {name: wrong for name in names if (wrong := _difference(way, name, table)) is not None}


def _taken(way):
    """Return the types that come out of a way."""
    names = set(OF_AVRO) if way == "read_avro" else {*TYPES, *FOREIGN}
    return sorted(names - REFUSED.get(way, set()) - ENDED.get(way, set()))


#: ways that have a function, and so workers, for each column; and the first of every third type that is quick
_OF_FUNCTIONS = {"udf": 0, "udf_of_arrow": 1}


def _quick(way):
    return _taken(way)[_OF_FUNCTIONS[way] :: 3] if way in _OF_FUNCTIONS else _taken(way)


@pytest.mark.parametrize("way", WAYS)
def test_values_of_every_type_come_out_as_the_table_says(way, environment, tmp_path):
    assert _wrong(way, _quick(way), environment, tmp_path) == {}


@pytest.mark.thorough
@pytest.mark.parametrize("way", _OF_FUNCTIONS)
def test_values_of_all_other_types_come_out_of_functions(way, environment, tmp_path):
    assert _wrong(way, sorted({*_taken(way)}.difference(_quick(way))), environment, tmp_path) == {}


@pytest.mark.thorough
@pytest.mark.parametrize("way", sorted(SPILLING))
def test_values_of_every_type_come_back_from_the_disk(way, spilling, tmp_path):
    assert _wrong(way, _taken(way), spilling, tmp_path) == {}


@pytest.mark.parametrize("way", REFUSED)
def test_a_type_that_a_way_does_not_take_is_refused_before_it_runs(way, environment, tmp_path):
    for name in sorted(REFUSED[way]):
        with pytest.raises((SchemaError, PlanError, NotYetSupportedError)) as failure:
            _rows_of(way, [name], environment, tmp_path)
        text = str(failure.value)
        assert name in text or way in OF_NAMED_TYPES, text
        assert str(Load([name], environment, tmp_path).rows.schema.field(name).type) in text, text
        assert _ADVICE.search(text), text


@pytest.mark.parametrize("way", ENDED)
def test_values_that_a_way_cannot_take_end_the_job_and_name_their_column(way, environment, tmp_path):
    for name in sorted(ENDED[way]):
        with pytest.raises(DataError, match=name) as failure:
            _rows_of(way, [name], environment, tmp_path)
        assert _ADVICE.search(str(failure.value)), failure.value
