"""Ways on which values of a type are compared: one job for each type, held against the ranks of the values.

A use of a key is a function of a ``Keyed``, rows with a column of one type: it returns what came out, and what should
have. The places of rows stand for the rows.
"""

from __future__ import annotations

import pyarrow as pa

import engine
from engine import JoinHint, col
from tests.types_table.paths import COUNT, PLACES
from tests.types_table.sampled_types import ROWS, values_of

USES = {}
#: rows of which so many have one key are skewed
MANY = 20_000


class Keyed:
    """Rows with the column ``key`` of a type, and ``k``, the place of a row."""

    def __init__(self, name, environment):
        self.environment = environment
        self.type = values_of(name, is_plain=True).type
        self.values = values_of(name)
        self.rows = environment.from_arrow(pa.table({"k": PLACES, "key": self.values}))
        texts = [None if value is None else str(value) for value in values_of(name, is_plain=True).to_pylist()]
        ascending = list(dict.fromkeys(texts[ROWS.index(each)] for each in (0, 1, 2)))
        #: of each row, which of the values it has
        self.ranks = [None if text is None else ascending.index(text) for text in texts]

    @property
    def known(self):
        """The places of rows whose key is not null."""
        return [place for place in range(COUNT) if self.ranks[place] is not None]

    def equal_to(self, place):
        return [other for other in range(COUNT) if self.ranks[other] == self.ranks[place]]

    def ascending(self):
        """The places in the order of the keys, nulls last, equal ones by place."""
        return sorted(range(COUNT), key=lambda place: (self.ranks[place] is None, self.ranks[place] or 0, place))

    def firsts(self):
        """The first place of each key, that of null too."""
        return sorted({self.equal_to(place)[0] for place in range(COUNT)})

    def pairs(self):
        return sorted((one, other) for one in self.known for other in self.equal_to(one))


def use(function):
    USES[function.__name__] = function
    return function


def _places(data):
    return sorted(data.select("k").to_arrow()["k"].to_pylist())


@use
def sort(keyed):
    return keyed.rows.sort(["key", "k"], nulls_last=True).to_arrow()["k"].to_pylist(), keyed.ascending()


@use
def descending_top(keyed):
    known = sorted(keyed.known, key=lambda place: (-keyed.ranks[place], place))
    top = keyed.rows.drop_nulls("key").sort(["key", "k"], descending=[True, False]).limit(3)
    return top.to_arrow()["k"].to_pylist(), known[:3]


@use
def group_by(keyed):
    groups = keyed.rows.group_by("key").agg(k=engine.min_("k"), count=engine.count()).sort("k").to_arrow()
    assert groups.schema.field("key").type == keyed.type
    found = list(zip(groups["k"].to_pylist(), groups["count"].to_pylist(), strict=True))
    return found, [(place, len(keyed.equal_to(place))) for place in keyed.firsts()]


@use
def groups_of_functions(keyed):
    kept = keyed.rows.group_by("key").reduce(
        lambda rows: [min(row.k for row in rows)] if rows else [], pa.schema([("k", pa.int64())])
    )
    return _places(kept), keyed.firsts()


@use
def join(keyed):
    found = keyed.rows.join(keyed.rows.select("key", j=col("k")), on="key", hint=JoinHint.REPARTITION_HASH_FIRST)
    pairs = found.select("k", "j").to_arrow().to_pydict()
    return sorted(zip(pairs["k"], pairs["j"], strict=True)), keyed.pairs()


@use
def sort_merge_join(keyed):
    found = keyed.rows.join(keyed.rows.select("key", j=col("k")), on="key", hint=JoinHint.REPARTITION_SORT_MERGE)
    pairs = found.select("k", "j").to_arrow().to_pydict()
    return sorted(zip(pairs["k"], pairs["j"], strict=True)), keyed.pairs()


@use
def skewed_join(keyed):
    """A sample of the rows finds the key that most of them have."""
    first = pa.array([0] * MANY, pa.int64())
    many = pa.table({"key": values_of_first(keyed, first), "k": pa.array(range(MANY), pa.int64())})
    found = keyed.environment.from_arrow(many).join(keyed.rows.select("key", j=col("k")), on="key")
    return found.count(), MANY * len(keyed.equal_to(0)) if keyed.ranks[0] is not None else 0


def values_of_first(keyed, places):
    """Return the first value many times, in its plain type."""
    return keyed.rows.to_arrow()["key"].combine_chunks().take(places)


@use
def asof_by(keyed):
    found = keyed.rows.asof_join(keyed.rows.with_columns(j=col("k")), on="k", by="key").sort("k").to_arrow()
    return found["j"].to_pylist(), [None if rank is None else place for place, rank in enumerate(keyed.ranks)]


@use
def distinct(keyed):
    return keyed.rows.select("key").distinct().count(), len(keyed.firsts())


@use
def drop_duplicates(keyed):
    return _places(keyed.rows.drop_duplicates("key", order_by="k")), keyed.firsts()


@use
def intersect(keyed):
    return _places(keyed.rows.intersect(keyed.rows.filter(col("k") < 3))), [0, 1, 2]


@use
def partition_by_range(keyed):
    return _places(keyed.rows.partition_by_range("key")), list(range(COUNT))


@use
def windows(keyed):
    ranked = keyed.rows.with_columns(
        place=engine.row_number().over(order_by=["key", "k"], nulls_last=True),
        count=engine.count().over(partition_by="key"),
        below=engine.count().over(order_by="key", nulls_last=True, range=(None, 0)),
    )
    found = ranked.sort("k").to_arrow().select(["place", "count", "below"]).to_pydict()
    ordered = keyed.ascending()
    wanted = {
        "place": [ordered.index(place) + 1 for place in range(COUNT)],
        "count": [len(keyed.equal_to(place)) for place in range(COUNT)],
        "below": [1 + max(map(ordered.index, keyed.equal_to(place))) for place in range(COUNT)],
    }
    return found, wanted


@use
def compared(keyed):
    """Expressions: null where a side is."""
    value, first = col("key"), engine.lit(values_of_first(keyed, pa.array([0]))[0])
    found = keyed.rows.select(
        "k",
        same=value == first,
        among=value.is_in([first]),
        safe=value.eq_null_safe(first),
        best=engine.least(value, first),
    )
    table = found.sort("k").to_arrow()
    assert table.schema.field("best").type == keyed.type
    is_first = [None if rank is None or keyed.ranks[0] is None else rank == keyed.ranks[0] for rank in keyed.ranks]
    wanted = [is_first, is_first, [rank == keyed.ranks[0] for rank in keyed.ranks]]
    return [table[name].to_pylist() for name in ("same", "among", "safe")], wanted


@use
def sql(keyed):
    keyed.environment.register("keyed", keyed.rows)
    try:
        ordered = keyed.environment.sql("SELECT k FROM keyed ORDER BY key NULLS LAST, k").to_arrow()
        groups = keyed.environment.sql("SELECT key, MIN(k) AS k FROM keyed GROUP BY key ORDER BY k").to_arrow()
        return [ordered["k"].to_pylist(), groups["k"].to_pylist()], [keyed.ascending(), keyed.firsts()]
    finally:
        keyed.environment.unregister("keyed")
