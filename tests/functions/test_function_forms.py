"""Functions in every form that Python has for one, of a script and of a module beside it, meet every call."""

import json
import shutil
import subprocess
import sys
import warnings
from functools import lru_cache, partial
from pathlib import Path

import cloudpickle
import pyarrow as pa
import pytest

from engine import Environment, udf
from engine.functions.function_bytes import packed
from engine.functions.python_functions import python_function

PROGRAM = Path(__file__).parent / "program_forms.py"
ONE = pa.schema([("y", pa.int64())])


#: calls whose functions have rows, groups, values and batches, and the others
FEW = ("map", "reduce", "udf", "map_batches")
OTHERS = ("flat_map", "filter", "map_partition", "co_group", "partition", "udf_arrow")


@pytest.mark.parametrize(
    ("where", "kinds"),
    [
        ("script", FEW),
        pytest.param("script", OTHERS, marks=pytest.mark.thorough),
        pytest.param("module", ("map", "udf"), marks=pytest.mark.thorough),  # they travel in the same way
    ],
)
def test_every_form_of_a_function_does_what_it_does_in_the_script(tmp_path, where, kinds):
    script = tmp_path / "job.py"
    if where == "script":
        shutil.copy(PROGRAM, script)
    else:
        shutil.copy(PROGRAM, tmp_path / "forms_beside.py")
        script.write_text("import sys\nimport forms_beside\nforms_beside.main(*sys.argv[1:])\n")
    command = [sys.executable, str(script), *kinds]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert {kind for kind, *_ in found} == {*kinds}
    assert len(found) > 20 * len(kinds)
    wrong = {(kind, form): made for kind, form, made, expected in found if made != expected}
    assert wrong == {}


@lru_cache(maxsize=3, typed=True)
def cached(value):
    return value


def test_a_cache_of_an_installed_module_travels_by_name_and_others_with_their_settings():
    assert cloudpickle.loads(packed(cached)) is cached
    assert cloudpickle.loads(packed(partial(cached))).func is cached
    inside = lru_cache(maxsize=5, typed=True)(lambda value: value)
    inside.note = "kept"
    inside(1)
    opened = cloudpickle.loads(packed(inside))
    assert opened.cache_parameters() == {"maxsize": 5, "typed": True}
    assert (opened.note, opened.cache_info().currsize, opened(7)) == ("kept", 0, 7)


@pytest.mark.parametrize("wrap", [lru_cache, lambda function: partial(lru_cache(function)), partial, staticmethod])
def test_the_place_of_a_function_is_that_of_the_one_inside(wrap):
    def own(value):
        return value

    found = python_function("map", wrap(own))
    assert (found.file, found.line) == (__file__, own.__code__.co_firstlineno)
    assert found.function_name.endswith("own")


class Both:
    def __call__(self, row):
        return (row.x,)

    def map_batches(self, batch):
        return batch


class Three(Both):
    def map(self, row):
        return (row.x,)


def test_an_object_whose_method_for_batches_is_not_called_is_told_of():
    with Environment() as environment:
        data = environment.from_arrow(pa.table({"x": [1]}))
        for call in (lambda: data.map(Both(), ONE), lambda: data.flat_map(Both(), ONE), lambda: data.filter(Both())):
            with pytest.warns(UserWarning, match=r"calls Both.__call__ with one row at a time, and never Both.map_bat"):
                call()
        with pytest.warns(UserWarning, match=r"a udf calls Both.__call__ .* call the method map in place of"):
            udf(pa.int64())(Both())
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            data.map(Three(), ONE)
            data.map_batches(Both(), ONE)
            udf(pa.int64(), kind="arrow")(Both())
