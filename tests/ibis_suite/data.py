"""Tables that Ibis' tests of backends read, of the same columns and the same kinds of values as its own.

``functional_alltypes`` follows the rule of the original; the other large ones are random, and the same in each run.
"""

import datetime
import random

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

ARRAYS = pa.schema(
    [
        ("x", pa.list_(pa.int64())),
        ("y", pa.list_(pa.string())),
        ("z", pa.list_(pa.float64())),
        ("grouper", pa.string()),
        ("scalar_column", pa.float64()),
        ("multi_dim", pa.list_(pa.list_(pa.int64()))),
    ]
)
STRUCT = pa.struct([("a", pa.float64()), ("b", pa.string()), ("c", pa.int64())])


def alltypes() -> pa.Table:
    """Return functional_alltypes: ten rows a day of two years."""
    rows, number, begin, first = [], 0, 0, datetime.datetime(2009, 1, 1)
    for day in range(730):
        date = first + datetime.timedelta(days=day)
        begin = 0 if date.day == 1 else begin
        for digit in range(10):
            minutes = begin + digit
            moment = date + datetime.timedelta(minutes=minutes, milliseconds=10 * (minutes * (minutes - 1) // 2 % 6000))
            rows.append(
                {
                    "id": number, "bool_col": digit % 2 == 0, "tinyint_col": digit, "smallint_col": digit,
                    "int_col": digit, "bigint_col": 10 * digit, "float_col": 1.1 * digit, "double_col": 10.1 * digit,
                    "date_string_col": f"{date:%m/%d/%y}", "string_col": str(digit), "timestamp_col": moment,
                    "year": date.year, "month": date.month,
                }
            )  # fmt: skip
            number += 1
        begin += 10
    types = {
        "id": pa.int32(), "bool_col": pa.bool_(), "tinyint_col": pa.int8(), "smallint_col": pa.int16(),
        "int_col": pa.int32(), "bigint_col": pa.int64(), "float_col": pa.float32(), "double_col": pa.float64(),
        "date_string_col": pa.string(), "string_col": pa.string(), "timestamp_col": pa.timestamp("us"),
        "year": pa.int32(), "month": pa.int32(),
    }  # fmt: skip
    return pa.Table.from_pylist(rows, pa.schema(list(types.items())))


def diamonds(count: int = 5000) -> pa.Table:
    """Return diamonds, in their order of cuts, colours and clarities."""
    some = random.Random(1)
    cuts, colours = ["Ideal", "Premium", "Good", "Very Good", "Fair"], list("EIJHFGD")
    clarities = ["SI2", "SI1", "VS1", "VS2", "VVS2", "VVS1", "I1", "IF"]
    return pa.table(
        {
            "carat": [round(some.uniform(0.2, 5), 2) for _ in range(count)],
            "cut": some.choices(cuts, k=count),
            "color": some.choices(colours, k=count),
            "clarity": some.choices(clarities, k=count),
            "depth": [round(some.uniform(43, 79), 1) for _ in range(count)],
            "table": [round(some.uniform(43, 95), 1) for _ in range(count)],
            "price": pa.array([some.randint(326, 18823) for _ in range(count)], pa.int64()),
            **{one: [round(some.uniform(0, 10), 2) for _ in range(count)] for one in "xyz"},
        }
    )


def players() -> tuple[pa.Table, pa.Table]:
    """Return batting and awards_players."""
    some = random.Random(2)
    names = [f"{some.choice('abcdefghijk')}player{number:03}01" for number in range(200)]
    numbers = ["G", "AB", "R", "H", "X2B", "X3B", "HR", "RBI", "SB", "CS", "BB", "SO", "IBB", "HBP", "SH", "SF", "GIDP"]
    batting, awards = [], []
    for name in names:
        for year in range(start := some.randint(1871, 2010), start + some.randint(1, 12)):
            row = {"playerID": name, "yearID": year, "stint": 1, "teamID": some.choice(["BOS", "NYA", "CHN"])}
            row |= {"lgID": some.choice(["AL", "NL"])}
            row |= {one: some.choice([None, *range(150)]) for one in numbers}
            batting.append(row | {"G": some.randint(1, 150)})
            if some.random() < 0.5 and (year >= 1900 or year in (1877, 1878, 1884, 1887, 1888, 1889, 1894)):
                award = {"playerID": name, "awardID": some.choice(["Gold Glove", "Triple Crown"]), "yearID": year}
                awards.append(award | {"lgID": row["lgID"], "tie": some.choice([None, "Y"]), "notes": None})
    texts = ("playerID", "teamID", "lgID", "awardID", "tie", "notes")

    def table(rows: list) -> pa.Table:
        return pa.Table.from_pylist(
            rows, pa.schema([(one, pa.string() if one in texts else pa.int64()) for one in rows[0]])
        )

    return table(batting), table(awards)


def astronauts(schema: pa.Schema, count: int = 300) -> pa.Table:
    """Return astronauts, of whom the tests look at a few columns."""
    some = random.Random(3)

    def value(field: pa.Field, number: int) -> object:
        if pa.types.is_integer(field.type):
            return number if field.name == "id" else some.randint(1, 2000)
        return round(some.uniform(0, 900), 2) if pa.types.is_floating(field.type) else f"{field.name} {number % 7}"

    return pa.table({one.name: pa.array([value(one, n) for n in range(count)], one.type) for one in schema})


def nested() -> dict[str, pa.Table]:
    """Return the tables of nested values."""
    arrays = [
        ([1, 2, 3], ["a", "b", "c"], [1.0, 2.0, 3.0], "a", 1.0, [[], [1, 2, 3], None]),
        ([4, 5], ["d", "e"], [4.0, 5.0], "a", 2.0, []),
        ([6, None], ["f", None], [6.0, None], "a", 3.0, [None, [], None]),
        ([None, 1, None], [None, "a", None], [], "b", 4.0, [[1], [2], [], [3, 4, 5]]),
        ([2, None, 3], ["b", None, "c"], None, "b", 5.0, None),
        ([4, None, None, 5], ["d", None, None, "e"], [4.0, None, None, 5.0], "c", 6.0, [[1, 2, 3]]),
    ]
    structs = [
        (1.0, "banana", 2), (2.0, "apple", 3), (3.0, "orange", 4), (None, "banana", 2), (2.0, None, 3), None,
        (3.0, "orange", None),
    ]  # fmt: skip
    json = [
        '{"a": [1,2,3,4], "b": 1}',
        '{"a":null,"b":2}',
        '{"a":"foo", "c":null}',
        "null",
        "[42,47,55]",
        "[]",
        '"a"',
        '""',
        '"b"',
        None,
        "true",
        "false",
    ]
    json += ["42", "37.37"]
    maps = [[("a", 1), ("b", 2), ("c", 3)], [("d", 4), ("e", 5), ("f", 6)]]
    return {
        "array_types": pa.Table.from_pylist([dict(zip(ARRAYS.names, row, strict=True)) for row in arrays], ARRAYS),
        "struct": pa.table({"abc": pa.array([one and dict(zip("abc", one, strict=True)) for one in structs], STRUCT)}),
        "json_t": pa.table({"rowid": range(1, len(json) + 1), "js": json}),
        "win": pa.table({"g": ["a"] * 5, "x": [0, 1, 2, 3, 4], "y": [3, 2, 0, 1, 1]}),
        "topk": pa.table({"x": [1, 1, None]}),
        "map": pa.table({"idx": [1, 2], "kv": pa.array(maps, pa.map_(pa.string(), pa.int64()))}),
    }


def write(folder, schema_of_astronauts: pa.Schema) -> None:
    """Write the files of the tests below a folder."""
    batting, awards = players()
    made = {
        "functional_alltypes": alltypes(), "diamonds": diamonds(), "batting": batting, "awards_players": awards,
        "astronauts": astronauts(schema_of_astronauts),
    }  # fmt: skip
    for kind in ("csv", "parquet"):
        (folder / kind).mkdir(parents=True, exist_ok=True)
    for name, table in made.items():
        pq.write_table(table, folder / "parquet" / f"{name}.parquet")
        pyarrow.csv.write_csv(table, folder / "csv" / f"{name}.csv")
