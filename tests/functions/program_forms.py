"""A program whose functions have every form that Python has for one; it prints what each call makes of each form.

    python program_forms.py KIND...    forms of the script itself      import program_forms; main()    of a module

Each form ends in ``body``, which does what ``KIND`` asks for: twice the value that it is given. So all forms meet all
calls. Beside the results of a call stands what they should be.
"""

import abc
import dataclasses
import enum
import functools
import json
import struct
import sys
import typing

import pyarrow as pa
import pyarrow.compute as pc

from engine import Environment, col, lit, udf

ONE = pa.schema([("y", pa.int64())])
NUMBER = struct.Struct("<q")
Twofold = typing.NewType("Twofold", int)
KIND = ""


def twice(value: int) -> int:
    return Twofold(NUMBER.unpack(NUMBER.pack(2 * value))[0])


BODIES = {
    "map": twice,
    "flat_map": lambda x: [twice(x)],
    "filter": lambda x: x % 2 == 0,
    "map_batches": lambda batch: pa.record_batch({"y": pc.multiply(batch["x"], 2)}),
    "map_partition": lambda rows: [twice(row.x) for row in rows],
    "reduce": lambda rows: [sum(twice(row.x) for row in rows)],
    "co_group": lambda left, right: [twice(next(left).x)] + [0 for _ in right if _ is None],
    "partition": lambda key, channel_count: key % channel_count,
    "udf": twice,
    "udf_arrow": lambda values: pc.multiply(values, 2),
}


def body(*given):
    return BODIES[KIND](*given)


def plain(*given):
    return body(*given)


def nested():
    factor = 1

    def inner(*given):
        return body(*given) if factor else None

    return inner


def counted(function):
    @functools.wraps(function)
    def wrapper(*given):
        wrapper.calls += 1
        return function(*given)

    wrapper.calls = 0
    return wrapper


class Decorator:
    def __init__(self, function):
        functools.update_wrapper(self, function)
        self.function = function

    def __call__(self, *given):
        return self.function(*given)


@counted
def decorated(*given):
    return body(*given)


@Decorator
def decorated_by_a_class(*given):
    return body(*given)


@functools.lru_cache(maxsize=7)
def cached(*given):
    return body(*given)


@functools.cache
def cached_and_recursive(*given, depth=3):
    return cached_and_recursive(*given, depth=depth - 1) if depth else body(*given)


def uses_a_cache(*given):
    return cached_and_recursive(*given)


@functools.singledispatch
def dispatched(first, *others):
    return body(first, *others)


@dispatched.register
def _of_int(first: int, *others):
    return body(first, *others)


def with_more(one, two, *given):
    assert (one, two) == (1, 2)
    return body(*given)


class Base(abc.ABC):
    @abc.abstractmethod
    def own(self, *given): ...


class Many(Base, typing.Generic[typing.TypeVar("T")]):
    """Has methods of each kind."""

    @functools.cached_property
    def does(self):
        return body

    def own(self, *given):
        return self.does(*given)

    @functools.lru_cache  # noqa: B019
    def own_cached(self, *given):
        return body(*given)

    @classmethod
    def of_class(cls, *given):
        return cls().own(*given)

    @staticmethod
    def of_none(*given):
        return body(*given)

    @functools.singledispatchmethod
    def dispatched(self, first, *others):
        return body(first, *others)

    own_more = functools.partialmethod(lambda self, one, *given: body(*given), 1)

    class Inner:
        __slots__ = ("value",)

        def __call__(self, *given):
            return body(*given)


class Named:
    """An object with a method for each call, and no ``__call__``."""

    def reduce(self, *given):
        return body(*given)

    map = flat_map = filter = map_batches = map_partition = co_group = partition = reduce


class Opened(Named):
    """The same, opened and closed."""

    def open(self, context):
        self.is_open = context.parallelism

    def reduce(self, *given):
        return body(*given) if self.is_open else None

    def close(self):
        del self.is_open

    map = flat_map = filter = map_batches = map_partition = co_group = partition = reduce


@dataclasses.dataclass(slots=True)
class Record:
    factor: int

    def __call__(self, *given):
        return body(*given)


class Tuple(typing.NamedTuple):
    factor: int

    def __call__(self, *given):
        return body(*given)


class Choice(enum.Enum):
    ONLY = 1

    def __call__(self, *given):
        return body(*given)


FORMS = {
    "function": plain,
    "lambda": lambda *given: body(*given),  # noqa: PLW0108
    "nested function": nested(),
    "decorated": decorated,
    "decorated by a class": decorated_by_a_class,
    "lru_cache": cached,
    "cache that calls itself": cached_and_recursive,
    "calls a cached one": uses_a_cache,
    "singledispatch": dispatched,
    "partial": functools.partial(with_more, 1, 2),
    "partial of a partial": functools.partial(functools.partial(with_more, 1), 2),
    "partial of a cached one": functools.partial(functools.lru_cache(with_more), 1, 2),
    "cached partial": functools.lru_cache(functools.partial(with_more, 1, 2)),
    "partial of a method": functools.partial(Many().own_more),
    "bound method": Many().own,
    "bound method, partial": Many().own_more,
    "cached method": Many().own_cached,
    "dispatched method": Many().dispatched,
    "class method": Many.of_class,
    "class method of an object": Many().of_class,
    "static method": Many.of_none,
    "object of an inner class": Many.Inner(),
    "object with methods": Named(),
    "object that is opened": Opened(),
    "dataclass": Record(2),
    "named tuple": Tuple(2),
    "enum": Choice.ONLY,
}
#: what these are given has no hash
NO_HASH = ("map_batches", "udf_arrow")
CACHES = ("lru_cache", "cache that calls itself", "calls a cached one", "partial of a cached one", "cached partial")


def is_meant(kind, form):
    if kind in NO_HASH and form in (*CACHES, "cached method"):
        return False
    return not (kind.startswith("udf") and form.startswith("object ") and form != "object of an inner class")


def calls(data):
    """What is called with each form: name, the call, what comes of it."""
    other = data.select("x")
    doubles = [2, 4, 6, 8]
    return [
        ("map", lambda form: data.map(form, ONE, "x"), doubles),
        ("flat_map", lambda form: data.flat_map(form, ONE, "x"), doubles),
        ("filter", lambda form: data.filter(form, columns="x"), [2, 4]),
        ("map_batches", lambda form: data.map_batches(form, ONE), doubles),
        ("map_partition", lambda form: data.map_partition(form, ONE), doubles),
        ("reduce", lambda form: data.group_by("x").reduce(form, ONE), doubles),
        ("co_group", lambda form: data.co_group(other, "x", form, ONE), doubles),
        ("partition", lambda form: data.partition_custom(form, "x"), [1, 2, 3, 4]),
        ("udf", lambda form: data.select(y=udf(pa.int64())(form)(col("x"))), doubles),
        ("udf_arrow", lambda form: data.select(y=udf(pa.int64(), kind="arrow")(form)(col("x"))), doubles),
    ]


def made(data, call, forms):
    """What the call makes of each form, in one job."""
    results = {form: call(FORMS[form]) for form in forms}
    parts = [rows.select(form=lit(form), value=col(rows.columns[0])) for form, rows in results.items()]
    rows = functools.reduce(lambda left, right: left.union(right), parts).collect()
    return {form: sorted(row.value for row in rows if row.form == form) for form in forms}


def main(*kinds):
    """Print what the calls of these names make of each form; without names those of all."""
    found = []
    with Environment(config={"parallelism.default": 1}) as environment:
        data = environment.from_arrow(pa.table({"x": [1, 2, 3, 4]}))
        for kind, call, expected in calls(data):
            if kinds and kind not in kinds:
                continue
            globals()["KIND"] = kind
            forms = [form for form in FORMS if is_meant(kind, form)]
            for form, values in made(data, call, forms).items():
                found.append((kind, form, values, expected))
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
