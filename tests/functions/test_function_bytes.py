"""Functions keep the names of their files on their way to workers."""

import subprocess
import sys

import cloudpickle

from engine.functions.function_bytes import packed

OPENS = """
import sys, cloudpickle
function = cloudpickle.loads(sys.stdin.buffer.read())
inner = function()
print(function.__code__.co_filename, inner.__code__.co_filename, inner.__code__.co_firstlineno, inner(2))
"""


def outer():
    factor = 21

    def inner(value):
        return factor * value

    return inner


def test_code_has_the_name_of_its_file_in_another_process():
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    try:
        data = packed(outer)
    finally:
        cloudpickle.unregister_pickle_by_value(sys.modules[__name__])
    shown = subprocess.run([sys.executable, "-P", "-c", OPENS], input=data, capture_output=True, check=True)
    first_line = outer().__code__.co_firstlineno
    assert shown.stdout.decode().split() == [__file__, __file__, str(first_line), "42"]


def test_what_cannot_be_packed_says_so():
    import threading

    lock = threading.Lock()
    try:
        packed(lambda: lock)
    except TypeError as error:
        assert "lock" in str(error)
    else:
        raise AssertionError("a lock was packed")
