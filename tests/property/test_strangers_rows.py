"""Rows, blocks, batches and text that others damaged, as many as ``MUTATIONS`` says, into everything that takes them.

    MUTATIONS=10000000 SEED=7 python -m pytest tests/property/test_strangers_rows.py

An error of the engine, or other values; never a crash, another exception, or a read outside (on a build with the
address sanitizer). Checksums of files and frames are tested elsewhere: here the damage is behind them.
"""

import contextlib
import functools
import itertools
import os
import random
from collections import Counter

import pyarrow as pa
import pytest

from engine.csv.columns import ColumnParser
from engine.csv.scan import RecordScanner, first_record_end, last_record_end, record_offsets
from engine.errors import CorruptBlockError, DataError
from engine.exchange.buffer_pool import unpooled_buffer
from engine.exchange.page_reader import PageReader
from engine.graph.said_operators import JoinType
from engine.graph.sort_key import SortKey
from engine.iomanager.block_format import decode_block, encode_block
from engine.iomanager.spill_identity import SpillIdentity
from engine.memory import value_stores
from engine.memory.value_stores import BLOCK_BYTES
from engine.records.outside_values import set_outside_bytes
from engine.records.row_codec import RowCodec
from engine.sort.external_sorter import ExternalSorter
from engine.sort.merged_batches import MergedBatches
from engine.sort.run_transfer import RunReceiver
from engine.transport.remote_input_channel import batch_of
from tests.join.join_oracle import hash_join, join_memory
from tests.property.test_damaged_bytes import FLAT, NESTED

MUTATIONS = int(os.environ.get("MUTATIONS", "1000"))
SEED = os.environ.get("SEED", "")
WORDS = (0, 1, 7, 8, 112, 0x7FFFFFFF, 0x80000000, 0x80000070, 0xFFFFFFF8, 0xFFFFFFFF)
REFUSED = (CorruptBlockError, DataError)
pytestmark = pytest.mark.timeout(120 + MUTATIONS // 20)

TABLES = {"flat": FLAT, "nested": NESTED}


def mutated(chance: random.Random, good: bytes) -> bytes:
    """Return bytes with one to three faults; mostly as many as before."""
    data = bytearray(good)
    for _ in range(chance.choice((1, 1, 2, 3))):
        at = chance.randrange(len(data))
        match chance.randrange(8):
            case 0 | 1:
                data[at] ^= 1 << chance.randrange(8)
            case 2:
                data[at] = chance.randrange(256)
            case 3 | 4 | 5:
                at &= ~3
                data[at : at + 4] = chance.choice(WORDS).to_bytes(4, "little")
            case 6:
                data[at & ~7 :] = b""
            case _:
                at &= ~7
                data[at:at] = data[at : at + 8 * chance.randrange(1, 9)]
        if not data:
            return bytes(8)
    return bytes(data)


def try_all(name, good, take, share=1.0):
    """Give mutations to ``take``; some of them must be refused, or nothing is tested."""
    chance, seen = random.Random(f"{name} {SEED}"), Counter()
    for _ in range(max(50, int(MUTATIONS * share))):
        bad = mutated(chance, good)
        try:
            take(bad)
        except REFUSED:
            seen["refused"] += 1
        else:
            seen["taken"] += 1
    assert seen["refused"] > 0


def rows_of(table):
    codec = RowCodec(table.schema)
    return codec, codec.to_rows(table.combine_chunks().to_batches()[0])


@pytest.mark.parametrize("name", TABLES)
def test_a_codec_refuses_them(name):
    codec, rows = rows_of(TABLES[name])
    # Strings that are no text are refused within nested values only.
    try_all(f"codec {name}", rows, lambda bad: codec.from_rows(bad).validate(full=name == "nested"))


class Values:
    """Holds wide values of rows in a list."""

    def __init__(self):
        self.values = []
        self.number = value_stores.register(self)

    def find_value(self, value, value_hash):
        return None

    def write_value(self, value, value_hash):
        self.values.append(bytes(value))
        return self.number, 0, len(self.values) - 1, 0

    def read_value(self, file, offset, checksum, into):
        into[:] = self.values[offset]

    def open_value(self, file, offset, size, checksum):
        return Blocks(self.values[offset])


class Blocks:
    """One of them, block by block."""

    def __init__(self, value):
        self.value = value

    def read_block(self, index, into):
        into[:] = self.value[index * BLOCK_BYTES :][: len(into)]


@contextlib.contextmanager
def rows_outside(table, outside, from_bytes):
    """Rows of a table, their values of at least so many bytes outside if so."""
    codec, values = RowCodec(table.schema), Values()
    if outside:
        set_outside_bytes(from_bytes)
        codec.keep_outside(values)
    rows = codec.to_rows(table.combine_chunks().to_batches()[0])
    set_outside_bytes()
    assert bool(values.values) == outside
    yield rows
    value_stores.forget(values.number)


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("outside", [False, True])
def test_a_reader_of_pages_refuses_them_and_gives_the_page_back(name, outside):
    table = TABLES[name]

    def take(bad):
        page = unpooled_buffer(bad)
        reader = PageReader(table.schema, 2)
        try:
            reader.add(page)
            for batch in reader.take_batches():
                batch.validate()
        finally:
            assert page.is_recycled

    with rows_outside(table, outside, 8) as rows:
        try_all(f"pages {name} {outside}", rows, take)


KEYED = FLAT.append_column("n", pa.array([3, 1, 2]))
SORTED_BY = [
    (SortKey("s"), SortKey("n")),
    (SortKey("x", descending=True), SortKey("d")),
    (SortKey("i", nulls_last=True), SortKey("s", descending=True)),
]


@pytest.mark.parametrize("outside", [False, True])
@pytest.mark.parametrize("keys", SORTED_BY, ids=lambda keys: keys[0].column)
def test_a_sort_refuses_them(keys, outside, tmp_path):
    with rows_outside(KEYED, outside, 4) as rows:

        def take(bad):
            with join_memory(tmp_path, 8, 4096) as (pool, space):
                sorter = ExternalSorter(KEYED.schema, keys, pool, space)
                try:
                    sorter.add_rows(bad)
                    sorter.add_rows(rows)
                    sorter.finish()
                    for batch in sorter.batches():
                        batch.validate()
                finally:
                    sorter.close()

        try_all(f"sort {keys} {outside}", rows, take, 0.02)


@pytest.mark.parametrize("keys", SORTED_BY, ids=lambda keys: keys[0].column)
def test_sorted_rows_of_another_process_are_refused(keys, tmp_path):
    _, rows = rows_of(KEYED)

    def take(bad):
        with join_memory(tmp_path, 8, 4096) as (pool, space):
            receiver = RunReceiver(KEYED.schema, keys, space, 4096)
            try:
                receiver.add_row(bad)
                receiver.end_run()
                receiver.add_row(rows)
                receiver.end_run()
            except REFUSED:
                receiver.take_runs().release()
                raise
            runs = receiver.take_runs()
            merged = MergedBatches([runs], pool)
            try:
                for batch in merged.batches(max_rows=2):
                    batch.validate()
            finally:
                merged.close()
                runs.release()

    try_all(f"run {keys}", rows, take, 0.02)


@pytest.mark.parametrize("how", [JoinType.INNER, JoinType.FULL, JoinType.ANTI])
@pytest.mark.parametrize(("key", "outside"), [("s", False), ("x", False), ("s", True)])
def test_a_join_refuses_them_as_build_rows(how, key, outside, tmp_path):
    (probe,) = KEYED.combine_chunks().to_batches()
    index = KEYED.schema.get_field_index(key)
    output = [(0, column) for column in range(KEYED.num_columns)]
    schema = pa.schema([pa.field(f"c{position}", field.type) for position, field in enumerate(KEYED.schema)])
    row_limits = itertools.cycle([None, 8])

    def take(rows, bad):
        with join_memory(tmp_path, 8, 4096) as (pool, space):
            sides = (KEYED.schema, KEYED.schema, [index], [index], how is not JoinType.ANTI)
            join = hash_join(how, *sides, output, schema, pool, space, row_limit=next(row_limits))
            try:
                join.add_build_rows(bad)
                join.add_build_rows(rows)
                join.finish_build()
                for batch in (*join.probe(probe), *join.finish_probe()):
                    batch.validate()
            finally:
                join.close()

    with rows_outside(KEYED, outside, 4) as rows:
        try_all(f"join {how} {key} {outside}", rows, functools.partial(take, rows), 0.02)


@pytest.mark.parametrize("compress", [False, True])
def test_a_block_refuses_everything_but_itself(compress):
    identity = SpillIdentity("0123456789abcdef" * 2, 3, 1, 2)
    good = encode_block(b"a row of bytes " * 30, identity, 1, 0, compress)

    def take(bad):
        assert decode_block(bad, identity, 1, 0, "spill-1", 64) == b"a row of bytes " * 30
        assert bad == good

    try_all(f"block {compress}", good, take)


@pytest.mark.parametrize("name", TABLES)
def test_a_batch_of_a_peer_is_refused_or_sound(name):
    batch = TABLES[name].combine_chunks().to_batches()[0]
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    try_all(f"ipc {name}", sink.getvalue().to_pybytes(), lambda bad: batch_of(bytearray(bad)).validate(full=True), 0.5)


TEXT = (
    b'1,"a ""quoted"" one, of more than sixteen bytes",2.5,2020-01-01\n2,plain,,\r\n-3,"two\nlines",12.25,1999-12-31\n'
    * 3
)
TEXT_SCHEMA = pa.schema([("id", pa.int64()), ("text", pa.string()), ("number", pa.float64()), ("day", pa.date32())])


@pytest.mark.parametrize("quote", [ord('"'), -1])
def test_whoever_scans_and_parses_text_takes_any_bytes(quote):
    """The bytes lie in memory of just their size, with others in front and behind only by chance."""
    chance = random.Random(f"csv {quote} {SEED}")
    parser = ColumnParser(TEXT_SCHEMA, TEXT_SCHEMA.names, ord(","), quote, True)
    parsed = 0
    for _ in range(MUTATIONS):
        text = mutated(chance, TEXT)[chance.randrange(70) :] or b"\n"
        for batch in parser.parse(text, 2) or ():
            batch.validate(full=True)
            parsed += 1
        end = last_record_end(text, ord(","), quote)
        assert 0 <= first_record_end(text, ord(","), quote) <= len(text)
        assert end == 0 or text[end - 1] == ord("\n")
        scanner = RecordScanner(ord(","), quote)
        scanner.advance(text[:70])
        assert scanner.next_record_end(text[70:]) <= len(text)
        assert record_offsets(text, ord(","), quote)[-1] == len(text)
    assert parsed or quote < 0
