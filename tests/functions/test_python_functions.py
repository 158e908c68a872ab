"""Python functions travel as bytes, with the place they come from."""

import functools
import pickle
import subprocess
import sys
import threading

import pytest

from engine.errors import PlanError, SchemaError
from engine.functions.python_functions import python_function

FACTOR = 3


def triple(row):
    return row * FACTOR


class Adder:
    def __init__(self, amount):
        self.amount = amount

    def __call__(self, row):
        return row + self.amount


def test_a_function_carries_its_name_file_and_line():
    function = python_function("map", triple)
    assert (function.kind, function.function_name, function.file) == ("map", "triple", __file__)
    assert function.line == triple.__code__.co_firstlineno


@pytest.mark.parametrize(
    ("function", "argument", "result"),
    [
        (triple, 2, 6),
        (lambda row: row + FACTOR, 2, 5),
        (Adder(5), 2, 7),
        (functools.partial(lambda left, right: left - right, 10), 3, 7),
    ],
)
def test_the_bytes_are_opened_where_this_module_is_unknown(function, argument, result, tmp_path):
    path = tmp_path / "function"
    path.write_bytes(python_function("map", function).function)
    program = f"import pickle; print(pickle.load(open({str(path)!r}, 'rb'))({argument!r}))"
    done = subprocess.run(
        [sys.executable, "-I", "-c", program], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert (done.stdout.strip(), done.stderr) == (str(result), "")


def test_names_of_lambdas_and_callable_objects_are_shown():
    assert python_function("filter", lambda row: row).function_name.endswith("<lambda>")
    adder = python_function("map", Adder(1))
    assert (adder.function_name, adder.file) == ("Adder", __file__)
    assert adder.line > 1
    assert python_function("map", len).function_name == "len"


def test_installed_functions_travel_by_name():
    assert len(python_function("map", pickle.dumps).function) < 200


def test_what_cannot_travel_is_refused_with_its_name_and_place():
    lock = threading.Lock()
    with pytest.raises(PlanError, match=r"function .*<lambda> \(.*test_python_functions.py:\d+\) cannot be sent"):
        python_function("map", lambda row: (lock, row))
    with pytest.raises(SchemaError, match="map: expected a function, or an object with a method map, got int"):
        python_function("map", 5)
