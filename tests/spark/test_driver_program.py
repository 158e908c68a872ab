"""Executors with another installation say so, both versions and both hosts."""

import pickle
from dataclasses import dataclass

import pyarrow as pa
import pytest

pytest.importorskip("pyspark")

from pyspark.sql.types import LongType, StructField, StructType

from engine import Environment, __version__
from engine.errors import VersionMismatchError
from engine.rpc.program import Program, own_program
from engine.spark import driver_program
from engine.spark.data_source import DreyReader, DreyWriter
from engine.spark.driver_program import OfTheDriver

SCHEMA = pa.schema({"x": pa.int64()})


@dataclass(frozen=True)
class Travels(OfTheDriver):
    value: int


class TravelsUnsaid:
    """As an earlier version would send it."""

    def __reduce__(self):
        return _opened, ({"value": 7},)


def _opened(state):
    travels = object.__new__(Travels)
    travels.__setstate__(state)
    return travels


@pytest.fixture
def another_driver(monkeypatch):
    """Have the driver be of another version; workers import their own."""
    monkeypatch.setattr(driver_program, "_program", lambda role: Program("9.9.9", "abcd1234", "d-1", role))


def test_what_the_same_program_sends_is_opened():
    assert pickle.loads(pickle.dumps(Travels(7))) == Travels(7)


def test_what_another_one_sends_is_not(monkeypatch):
    sent = pickle.dumps(Travels(7))
    monkeypatch.setattr(driver_program, "_program", lambda role: own_program(role, "ffffffff"))
    with pytest.raises(VersionMismatchError, match=r"the Spark-driver on .*, the Spark-worker on .*ffffffff"):
        pickle.loads(sent)
    with pytest.raises(VersionMismatchError, match="the process at Spark's driver does not say which Drey it has"):
        pickle.loads(pickle.dumps(TravelsUnsaid()))


def told(error):
    text = str(error)
    assert isinstance(error, VersionMismatchError), error
    assert "the Spark-driver on d-1 has Drey 9.9.9 (protocol abcd1234)" in text and f" has Drey {__version__} (" in text
    assert len(text.splitlines()) == 1
    return True


@pytest.mark.spark
@pytest.mark.timeout(240)
def test_a_job_ends_with_both_versions(spark, another_driver):
    with Environment(target="spark") as env, pytest.raises(VersionMismatchError) as refused:
        env.from_rows([(1,), (2,)], SCHEMA).map(lambda row: (row.x,), SCHEMA).collect()
    assert told(refused.value)


def test_readers_and_writers_of_a_data_set_say_so_too(monkeypatch, tmp_path):
    with Environment() as env:
        env.from_rows([(1,), (2,)], SCHEMA).write_records(tmp_path / "set")
        env.execute()
    made = [
        DreyReader(tmp_path / "set", StructType([StructField("x", LongType())])),
        DreyWriter(tmp_path / "new", SCHEMA, overwrite=False),
    ]
    sent = [pickle.dumps(each) for each in made]
    assert [type(pickle.loads(each)) for each in sent] == [DreyReader, DreyWriter]
    monkeypatch.setattr(driver_program, "_program", lambda role: own_program(role, "ffffffff"))
    for each in sent:
        with pytest.raises(VersionMismatchError):
            pickle.loads(each)
