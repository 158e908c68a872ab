"""Decimal commas, thousands in groups, and hexadecimal numbers, which are none."""

import decimal

import pyarrow as pa
import pytest

from engine import Environment
from engine.csv.options import CsvOptions
from engine.csv.source import csv_source
from engine.csv.written_numbers import WrittenNumbers
from engine.errors import ConfigurationError, DataError

TYPES = pa.schema([("a", pa.int64()), ("b", pa.float64()), ("c", pa.decimal128(10, 2)), ("d", pa.string())])
GERMAN = {"delimiter": ";", "decimal": ",", "thousands": ".", "header": True}


@pytest.fixture
def read(tmp_path):
    path = tmp_path / "numbers.csv"
    with Environment(config={"parallelism.default": 2}) as environment:

        def of_text(text, **options):
            path.write_text(text)
            return environment.read_csv(path, **options)

        yield of_text


def test_numbers_with_a_decimal_comma_and_thousands_are_read_by_a_schema(read):
    text = 'a;b;c;d\n1.234;1.234,5;1,25;1.2\n7;-3,5e2;+1.000,5;x\n;;;\n"12.345.678"; 2 ;3;4\n'
    assert read(text, schema=TYPES, **GERMAN).collect() == [
        (1234, 1234.5, decimal.Decimal("1.25"), "1.2"),
        (7, -350.0, decimal.Decimal("1000.50"), "x"),
        (None, None, None, None),
        (12345678, 2.0, decimal.Decimal("3.00"), "4"),
    ]


@pytest.mark.parametrize(
    ("text", "options", "types", "rows"),
    [
        ("a;b\n1,5;2\n2,5;3\n", {"delimiter": ";", "decimal": ","}, ["double", "int64"], [(1.5, 2), (2.5, 3)]),
        ('a,b\n"1,500","2,000.5"\n2,3\n', {"thousands": ","}, ["int64", "double"], [(1500, 2000.5), (2, 3.0)]),
        ("a;b\n1 234;x\n", {"delimiter": ";", "thousands": " "}, ["int64", "string"], [(1234, "x")]),
        ("a;b\n01.02.2024;0.123\n", GERMAN, ["string", "string"], [("01.02.2024", "0.123")]),
        ("a;b\n9.223.372.036.854.775.808;1\n", GERMAN, ["double", "int64"], [(2.0**63, 1)]),
    ],
)
def test_types_are_found_without_a_schema(read, text, options, types, rows):
    data = read(text, **{"header": True, **options})
    assert list(map(str, data.schema.types)) == types
    assert data.collect() == rows


@pytest.mark.parametrize("value", ["1,50", "12,34", "1,2345", ",123", "1,", "0,123", "1,234,5", "1.5.2", "x", "0x10"])
def test_a_mark_that_parts_no_thousands_is_an_error_and_a_row_to_skip(read, value):
    schema = pa.schema([("a", pa.float64()), ("b", pa.int64())])
    text = f'"1,000",1\n"{value}",2\n"3,000.5",3\n'
    with pytest.raises(DataError, match=r"numbers.csv, line 2, column 1 \(a\): '.*' is not double"):
        read(text, schema=schema, thousands=",").collect()
    kept = read(text, schema=schema, thousands=",", on_bad_row="skip")
    assert kept.collect() == [(1000.0, 1), (3000.5, 3)]


def test_a_hexadecimal_number_is_no_integer(read):
    schema = pa.schema([("a", pa.int64()), ("b", pa.string())])
    with pytest.raises(DataError, match=r"line 2, column 1 \(a\): '0x10' is not int64"):
        read("1,0x1\n0x10,b\n", schema=schema).collect()
    assert read("1,0x1\n-0XfF,b\n3,0x\n", schema=schema, on_bad_row="skip").collect() == [(1, "0x1"), (3, "0x")]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"thousands": "."}, r"decimal and thousands are both '\.'"),
        ({"decimal": ",,"}, r"decimal=',,': must be one character, such as ',' or '\.'"),
        ({"thousands": "1"}, r"thousands='1': must be one character"),
        ({"decimal": None}, r"decimal=None: must be one character"),
    ],
)
def test_marks_that_cannot_be_told_apart_are_refused(read, options, message):
    with pytest.raises(ConfigurationError, match=message):
        read("1,2\n", **options)


def test_marks_are_part_of_the_source(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("1;2\n")
    spec, _, _ = csv_source(path, options=CsvOptions(delimiter=";", decimal=",", thousands="."))
    assert (spec.decimal, spec.thousands) == (",", ".")
    assert not WrittenNumbers(",").are_texts(pa.float64())


@pytest.mark.parametrize(
    ("text", "data_type"),
    [
        ("a\n9007199254740993\n0.5\n", "string"),
        ("a\n-90071992547409930\n0.5\n", "string"),
        ("a\n9007199254740992\n0.5\n", "double"),
        ("a\n1714500000000000\n0.5\n", "double"),
        ("a\n1\ntrue\n", "string"),
        ("a\ntrue\nFalse\n", "bool"),
        ("a\n1\n0\n", "int64"),
    ],
)
def test_what_a_type_would_change_stays_text(read, text, data_type):
    assert str(read(text, header=True).schema.field("a").type) == data_type
