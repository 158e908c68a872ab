"""Malformed CSV: file, line and column in the error, or counted and skipped; and what is not malformed."""

import pyarrow as pa
import pytest

from engine import DataError, EngineError, JobExecutionError, SchemaError, col
from tests.integration.row_oracle import assert_same_rows

SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string()), ("price", pa.float64())])


@pytest.fixture
def write(tmp_path):
    def write_it(text, name="data.csv"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write_it


def read(env, path, **options):
    return env.read_csv(str(path), schema=options.pop("schema", SCHEMA), **options).collect()


# ---- malformed

MALFORMED = {
    "not an integer": ("1,a,1.5\nx2,b,2.5\n", 2, "id", "x2"),
    "not a float": ("1,a,1.5\n2,b,2.5\n3,c,many\n", 3, "price", "many"),
    "a float for an integer": ("1.5,a,1\n", 1, "id", "1.5"),
    "an integer too large": ("1,a,1\n9223372036854775808,b,2\n", 2, "id", "9223372036854775808"),
    "too few fields": ("1,a,1.5\n2,b\n", 2, None, "2 fields"),
    "too many fields": ("1,a,1.5\n2,b,2.5,more\n3,c,3\n", 2, None, "4 fields"),
    "after a record of three lines": ('1,"a\nb\nc",1.5\nx,b,2.5\n', 4, "id", "x"),
    "with CRLF": ("1,a,1.5\r\n2,b,zwei\r\n", 2, "price", "zwei"),
    "in the last line without an end": ("1,a,1.5\n2,b,zwei", 2, "price", "zwei"),
    "quoted": ('1,a,1.5\n2,b,"zwei"\n', 2, "price", "zwei"),
    "a bad byte": (b"1,a,1.5\n2,\xff\xfe,2.5\n", 2, "name", "UTF-8"),
}


@pytest.mark.quick
@pytest.mark.sample("values")
@pytest.mark.parametrize("case", MALFORMED)
def test_the_error_names_file_line_column_and_value(any_environment, write, case):
    text, line, column, value = MALFORMED[case]
    path = write(text)
    with pytest.raises(DataError) as caught:
        read(any_environment, path)
    message = str(caught.value)
    assert message.startswith(f"file {path}, line {line},")
    assert value in message.splitlines()[0]
    if column:
        assert f"({column})" in message.splitlines()[0]
    assert len(message.splitlines()) <= 15


@pytest.mark.sample("values")
@pytest.mark.parametrize("case", MALFORMED)
def test_skipping_leaves_only_the_malformed_record_out(any_environment, write, case):
    text, _, _, _ = MALFORMED[case]
    good = any_environment.read_csv(str(write(text)), schema=SCHEMA, on_bad_row="skip").collect()
    raw = text if isinstance(text, bytes) else text.encode()
    assert all(str(row.id).encode() in raw for row in good)
    expected = {"not a float": 2, "too many fields": 2, "a float for an integer": 0}
    assert len(good) == expected.get(case, 1)


def test_a_quote_without_end_is_an_error_at_the_line_where_it_begins(any_environment, write):
    path = write('1,a,1.5\n2,b,2.5\n3,"c,3.5\n4,d,4.5\n')
    with pytest.raises(DataError) as caught:
        read(any_environment, path)
    assert f"{path}, line 3," in str(caught.value)


#: (text, line and column where the quote stands that none closes, good rows before it); two columns
UNCLOSED = {
    "the last field": ('1,a\n2,"b', 2, 2, 1),
    "the last field, with a line end": ('1,a\n2,"b\n', 2, 2, 1),
    "and nothing behind it": ('1,a\n2,"', 2, 2, 1),
    "two quotes are one": ('1,a\n2,"b""', 2, 2, 1),
    "three are an empty value that goes on": ('1,a\n2,"""', 2, 2, 1),
    "records behind it": ('1,a\n2,"b\n3,c\n4,d\n', 2, 2, 1),
    "behind another one of three lines": ('1,a\n"2","b\nb\nb"\n"3\n', 5, 1, 2),
    "the first of all": ('"1,a\n2,b\n', 1, 1, 0),
    "behind a value of two lines in its record": ('1,a\n"\n2","b', 3, 2, 1),
    "with CRLF": ('1,a\r\n2,"b\r\n', 2, 2, 1),
    "behind a quote that is an ordinary character": ('1,a"a\n2,"b', 2, 2, 1),
}


@pytest.mark.thorough
@pytest.mark.sample("values")
@pytest.mark.parametrize("case", UNCLOSED)
def test_a_quote_that_none_closes_is_an_error_where_it_opens(any_environment, write, case):
    text, line, column, good = UNCLOSED[case]
    path = write(text)
    by_types = {
        "natively": pa.schema([("n", pa.int64()), ("text", pa.string())]),
        "by Arrow's parser": pa.schema([("n", pa.uint8()), ("text", pa.string())]),
        "as bytes": pa.schema([("n", pa.string()), ("text", pa.binary())]),
    }
    for schema in by_types.values():
        data = any_environment.read_csv(str(path), schema=schema)
        for reads in (data.collect, data.select("n").collect, data.count):
            with pytest.raises(DataError) as caught:
                reads()
            where = f"{path}, line {line}, column {column} ({schema.names[column - 1]}): "
            assert f"{where}a quote that opens here is never closed" in str(caught.value)
        skipping = any_environment.read_csv(str(path), schema=schema, on_bad_row="skip")
        assert skipping.count() == good


def test_a_quote_that_none_closes_ends_a_file_of_one_column_and_a_header(any_environment, write):
    schema = pa.schema([("text", pa.string())])
    with pytest.raises(DataError, match=r"line 2, column 1 \(text\): a quote that opens here is never closed"):
        read(any_environment, write('a\n"b\n'), schema=schema)
    header = write('text,"more\na,b\n', "header.csv")
    for options in ({"schema": None}, {"schema": pa.schema([("text", pa.string()), ("more", pa.string())])}):
        with pytest.raises(DataError, match=r"header\.csv, line 1, column 2: a quote that opens here is never closed"):
            read(any_environment, header, header=True, **options)
    write("text,more\n", "folder/a.csv")
    write('text,"more\n', "folder/b.csv")
    with pytest.raises(DataError, match=r"b\.csv, line 1, column 2: a quote that opens here is never closed"):
        read(any_environment, header.parent / "folder", header=True, schema=options["schema"])
    plain = any_environment.read_csv(str(write('a\n"b\n')), schema=schema, quote=None)
    assert plain.collect() == [("a",), ('"b',)]


@pytest.mark.parametrize("line_index", [5, 150_000, 299_999])
def test_a_quote_that_none_closes_in_a_file_of_several_splits(open_environment, write, line_index):
    env = open_environment(**{"parallelism.default": 3})
    lines = [f"{n},some text that is not short" for n in range(300_000)]
    lines[line_index - 2] = f'{line_index - 2},"two\nlines, of ""one"""'
    lines[line_index] = f'{line_index},"open'
    path = write("\n".join(lines) + "\n", "big/big.csv")
    write("1,a\n" * 1000, "big/small.csv")
    schema = pa.schema([("n", pa.int64()), ("text", pa.string())])
    data = env.read_csv(str(path.parent), schema=schema)
    for reads in (data.count, data.select("n").count):
        with pytest.raises(DataError) as caught:
            reads()
        assert f"big.csv, line {line_index + 2}, column 2 (text): a quote that opens here is never closed" in str(
            caught.value
        )
    assert env.read_csv(str(path.parent), schema=schema, on_bad_row="skip").count() == line_index + 1000


def test_the_line_is_exact_in_the_middle_of_a_large_file(open_environment, write):
    env = open_environment(**{"parallelism.default": 3})
    lines = [f'{n},"name\n{n}",{n}.5' for n in range(60_000)]
    lines[43_210] = "43210,name,none"
    path = write("\n".join(lines) + "\n", "big/big.csv")
    write("1,a,1\n" * 1000, "big/small.csv")
    with pytest.raises(DataError) as caught:
        read(env, path.parent)
    assert f"big.csv, line {2 * 43_210 + 1}, column 3 (price): 'none'" in str(caught.value)
    assert env.read_csv(str(path.parent), schema=SCHEMA, on_bad_row="skip").count() == 60_999


def test_which_rows_are_bad_does_not_depend_on_the_columns_that_are_read(environment, write):
    path = write("1,a,1.5\n2,b,bad\n3,c,3.5\n")
    data = environment.read_csv(str(path), schema=SCHEMA, on_bad_row="skip")
    assert data.count() == 2
    assert sorted(data.select("id").collect()) == [(1,), (3,)]


def test_bad_rows_are_counted_in_the_report(open_environment, write, tmp_path):
    env = open_environment()
    path = write("1,a,1.5\n2,b,bad\nx,c,3.5\n")
    env.read_csv(str(path), schema=SCHEMA, on_bad_row="skip").write_csv(str(tmp_path / "out"))
    result = env.execute()
    tasks = [subtask for vertex in result.vertices for subtask in vertex.subtasks]
    assert sum(task.bad_rows for task in tasks) == 2


def test_a_failing_read_leaves_no_output(open_environment, write, tmp_path):
    env = open_environment()
    env.read_csv(str(write("1,a,1.5\nx,b,2\n")), schema=SCHEMA).write_csv(str(tmp_path / "out"))
    with pytest.raises(DataError):
        env.execute()
    assert [path.name for path in tmp_path.iterdir()] == ["data.csv"]


@pytest.mark.quick
def test_null_in_the_numbers_and_wrong_options_are_refused(environment, write):
    path = write("1,a,1\n")
    for options in ({"on_bad_row": "ignore"}, {"delimiter": ""}, {"delimiter": ",,"}, {"quote": ","}, {"header": True}):
        with pytest.raises(EngineError):
            read(environment, path, **options)
    with pytest.raises(SchemaError):
        read(environment, path, schema=pa.schema([("nested", pa.list_(pa.int64()))]))


# ---- not malformed


def test_unquoted_empty_is_null_for_every_type_and_quoted_empty_is_the_empty_string(any_environment, write):
    schema = pa.schema(
        [("i", pa.int32()), ("s", pa.string()), ("b", pa.bool_()), ("d", pa.date32()), ("t", pa.string())]
    )
    rows = read(any_environment, write(',,,,""\n1,"",true,2024-02-29,\n'), schema=schema)
    import datetime

    assert_same_rows(rows, [(None, None, None, None, ""), (1, "", True, datetime.date(2024, 2, 29), None)])


@pytest.mark.parametrize("text", ["", "\n", "\r\n", "\ufeff"], ids=["nothing", "newline", "crlf", "bom"])
def test_empty_files_have_no_rows(any_environment, write, text):
    assert read(any_environment, write(text)) == []


def test_a_byte_order_mark_crlf_and_a_missing_last_newline(any_environment, write):
    rows = read(any_environment, write('\ufeff1,a,1.5\r\n2,"b\r\nb",2.5\r\n3,c,'))
    assert_same_rows(rows, [(1, "a", 1.5), (2, "b\r\nb", 2.5), (3, "c", None)])


def test_headers_in_every_file_say_where_the_columns_are(any_environment, write):
    write("id,name,price\n1,a,1.5\n", "folder/one.csv")
    path = write("id,name,price\n2,b,2.5\n", "folder/two.csv")
    rows = read(any_environment, path.parent, header=True)
    assert_same_rows(rows, [(1, "a", 1.5), (2, "b", 2.5)])
    few = read(
        any_environment, path.parent, header=True, schema=pa.schema([("price", pa.float64()), ("id", pa.int64())])
    )
    assert_same_rows(few, [(1.5, 1), (2.5, 2)])


def test_a_file_of_only_a_header_and_a_header_with_a_mark(environment, write):
    assert read(environment, write("\ufeffid,name,price\n"), header=True) == []
    assert read(environment, write("\ufeffid,name,price\r\n1,a,1\r\n", "b.csv"), header=True) == [(1, "a", 1.0)]


def test_a_header_of_another_file_that_differs_is_an_error(environment, write):
    write("id,name,price\n1,a,1.5\n", "folder/one.csv")
    path = write("id,price,names\n2,2.5,b\n", "folder/two.csv")
    with pytest.raises((JobExecutionError, SchemaError), match=r"two\.csv, line 1: the header has no name"):
        read(environment, path.parent, header=True)


def test_without_a_schema_types_are_inferred_and_explain_says_so(environment, write):
    path = write("id,name,price\n1,a,1.5\n2,,2\n")
    data = environment.read_csv(str(path), header=True)
    assert data.to_arrow().schema.equals(
        pa.schema([("id", pa.int64()), ("name", pa.string()), ("price", pa.float64())])
    )
    assert_same_rows(data.collect(), [(1, "a", 1.5), (2, None, 2.0)])
    assert "inferred" in data.explain()


def test_a_type_that_the_sample_did_not_show_is_an_error_with_the_line(environment, write):
    lines = [f"{n},x" for n in range(200_000)]
    lines[190_000] = "no number,x"
    path = write("\n".join(["id,name", *lines]) + "\n")
    with pytest.raises(DataError, match="line 190002, column 1"):
        environment.read_csv(str(path), header=True).filter(col("id") >= 0).count()


def test_other_delimiters_quotes_and_null_values(any_environment, write):
    path = write("1|'a|b'|NULL\n2|NULL|2.5\n3|'NULL'|'3.5'\n")
    rows = read(any_environment, path, delimiter="|", quote="'", null_values=["NULL"])
    assert_same_rows(rows, [(1, "a|b", None), (2, None, 2.5), (3, "NULL", 3.5)])


def test_folders_globs_and_many_small_files(any_environment, write, tmp_path):
    for index in range(12):
        write(f"{index},n{index},{index}.5\n", f"many/part-{index:03d}.csv")
    write("", "many/empty.csv")
    write("hidden, not, read, at all\n", "many/.hidden.csv")
    expected = [(n, f"n{n}", n + 0.5) for n in range(12)]
    assert_same_rows(read(any_environment, tmp_path / "many"), expected)
    assert_same_rows(read(any_environment, tmp_path / "many" / "part-00*.csv"), expected[:10])


@pytest.mark.quick
def test_splits_respect_quotes_whatever_the_parallelism(open_environment, write):
    cells = ["x" * (n % 50) + '"",\n' * (n % 4) for n in range(30_000)]
    text = "".join(f'{n},"{cell}",{n}.25\n' for n, cell in enumerate(cells))
    path = write(text * 2)
    for parallelism in (1, 3, 7):
        env = open_environment(**{"parallelism.default": parallelism})
        rows = env.read_csv(str(path), schema=SCHEMA)
        table = rows.to_arrow()
        assert len(table) == 60_000
        assert sorted(table["id"].to_pylist()) == sorted([*range(30_000)] * 2)
        lengths = sum(len(cell.replace('""', '"')) for cell in cells) * 2
        assert sum(map(len, table["name"].to_pylist())) == lengths
