"""Group keys that stay codes of dictionaries, from a Parquet file into the aggregate: the groups of plain texts."""

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engine import Environment, avg, col, count, max_, sum_
from engine.aggregate import hash_aggregate
from engine.errors import DataError
from engine.parquet import source_types

ROWS = 20_000
FEW = ["yes", "no", "", None, "a text that is longer than sixteen bytes"]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Three files of one data set; the texts of the last one are no codes there."""
    folder = tmp_path_factory.mktemp("coded")
    for number in range(3):
        rows = range(number * ROWS, (number + 1) * ROWS)
        table = pa.table(
            {
                "few": [FEW[row * 7919 % (4 + number % 2)] for row in rows],
                "hundred": pa.array([f"id{row * 31 % 113}" for row in rows], pa.large_string()),
                "view": pa.array([f"{number} {row % 5}" for row in rows], pa.string_view()),
                "small": pa.array([row * 13 % 17 for row in rows], pa.int8()),
                "value": pa.array(rows, pa.int32()),
            }
        )
        pq.write_table(table, folder / f"{number}.parquet", row_group_size=5000, use_dictionary=number < 2)
    return folder


@pytest.fixture
def key_types(monkeypatch):
    """What kinds of columns aggregates were given: (name, whether it came as codes)."""
    seen = set()
    add_batch = hash_aggregate.HashAggregate.add_batch

    def noted(self, batch):
        seen.update((field.name, pa.types.is_dictionary(field.type)) for field in batch.schema)
        return add_batch(self, batch)

    monkeypatch.setattr(hash_aggregate.HashAggregate, "add_batch", noted)
    return seen


def rows(table):
    return sorted(map(repr, (tuple(row.values()) for row in table.to_pylist())))


def expected(files, query):
    with duckdb.connect() as connection:
        return rows(connection.sql(query.replace("FILES", f"read_parquet('{files}/*.parquet')")).to_arrow_table())


@pytest.mark.parametrize("key", ["few", "hundred", "view"])
def test_codes_reach_the_aggregate(environment, files, key_types, key):
    data = environment.read_parquet(str(files))
    result = data.group_by(key).agg(n=count(), total=sum_(col("value")), mean=avg(col("small"))).to_arrow()
    query = f"SELECT {key}, count(*), sum(value)::BIGINT, avg(small) FROM FILES GROUP BY {key}"
    assert rows(result) == expected(files, query)
    assert {(key, True), (key, False)} <= key_types


def test_several_keys_behind_filters_of_them(environment, files, key_types):
    data = environment.read_parquet(str(files)).filter((col("few") != "no") & (col("value") % 3 > 0))
    result = data.group_by("few", "small", "hundred").agg(total=sum_(col("value"))).to_arrow()
    query = "SELECT few, small, hundred, sum(value)::BIGINT FROM FILES WHERE few <> 'no' AND value % 3 > 0 GROUP BY ALL"
    assert rows(result) == expected(files, query)
    assert ("few", True) in key_types


def test_a_filter_that_leaves_few_rows(environment, files):
    data = environment.read_parquet(str(files)).filter(col("value") % 500 == 0)
    result = data.group_by("hundred", "few").agg(n=count()).to_arrow()
    query = "SELECT hundred, few, count(*) FROM FILES WHERE value % 500 = 0 GROUP BY ALL"
    assert rows(result) == expected(files, query)


def test_keys_that_are_computed_with_are_texts(environment, files, key_types):
    data = environment.read_parquet(str(files))
    result = data.group_by("few").agg(longest=max_(col("few")), n=count(col("few"))).to_arrow()
    assert rows(result) == expected(files, "SELECT few, max(few), count(few) FROM FILES GROUP BY few")
    assert ("few", True) not in key_types


def test_groups_pass_through_where_that_pays(files):
    """Keys that hardly repeat beside one that comes as codes."""
    with Environment(config={"taskmanager.memory.process.size": "300mb"}) as small:
        data = small.read_parquet(str(files))
        result = data.group_by("few", "value").agg(n=count()).to_arrow()
    assert rows(result) == expected(files, "SELECT few, value, count(*) FROM FILES GROUP BY ALL")


def test_codes_that_the_dictionary_does_not_have_are_told_with_the_file(environment, tmp_path):
    path = tmp_path / "damaged.parquet"
    pq.write_table(pa.table({"few": ["a", "b"] + ["c"] * 998}), path, compression="none", use_dictionary=True)
    chunk = pq.read_metadata(path).row_group(0).column(0)
    content = bytearray(path.read_bytes())
    content[chunk.dictionary_page_offset + chunk.total_compressed_size - 1] = 3  # of the run of 998 rows
    path.write_bytes(content)
    data = environment.read_parquet(str(path))
    for asked in (data.group_by("few").agg(n=count()), data, data.filter(col("few") == "c"), data.agg(m=max_("few"))):
        with pytest.raises(DataError, match=r"damaged.parquet, row group 0: column 'few': .* is damaged"):
            asked.to_arrow()


def test_codes_that_streams_bring_are_checked(environment, files, monkeypatch):
    def damaged(array):
        raise pa.ArrowInvalid("9 numbers of texts in a dictionary of 4 go beyond it")

    monkeypatch.setattr(source_types, "check_codes", damaged)
    data = environment.read_parquet(str(files / "0.parquet")).group_by("few").agg(longest=max_("hundred"))
    with pytest.raises(DataError, match=r"0.parquet, row groups .* go beyond it"):
        data.to_arrow()
