"""``col("x").str``: functions of strings. Positions and lengths count characters.

Held by: tests/column_expressions/test_expression.py
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, Protocol, Self, TypeVar

import pyarrow as pa

from engine.column_expressions.data_types import to_data_type
from engine.column_expressions.other_names import ON_TEXTS, HasOtherNames
from engine.errors import SchemaError
from engine.graph.expression import Expression

if TYPE_CHECKING:
    from engine.choices import NormalForm, TextEncoding


class Value(Protocol):
    """The protocol that these functions build on."""

    def call(self, function: str, *others: Any, **options: bool | int | float | str | None) -> Self:
        """Return a function of this value."""
        ...

    def made(self, value: Any) -> Self:
        """Return a column of the plan, an expression or a plain value as a value of this kind."""
        ...

    @property
    def expression(self) -> Expression:
        """The expression that computes it."""
        ...


ExprT = TypeVar("ExprT", bound=Value)


class StringExpressions(HasOtherNames, Generic[ExprT]):
    """Functions of a string value; null gives null."""

    _kind = ".str"
    _other_names = ON_TEXTS

    def __init__(self, value: ExprT) -> None:
        self._value = value

    def length(self) -> ExprT:
        """Return the number of characters.

        >>> values(col("x").str.length(), x=["añ😀", ""])
        [3, 0]
        """
        return self._value.call("str_length")

    def upper(self) -> ExprT:
        """Convert to upper case.

        >>> values(col("x").str.upper(), x=["año"])
        ['AÑO']
        """
        return self._value.call("str_upper")

    def lower(self) -> ExprT:
        """Convert to lower case.

        >>> values(col("x").str.lower(), x=["AÑO"])
        ['año']
        """
        return self._value.call("str_lower")

    def strip(self, characters: str | None = None) -> ExprT:
        """Remove white space, or those characters, at both ends.

        >>> values(col("x").str.strip(), x=[" a "])
        ['a']
        """
        return self._value.call("str_strip", characters=characters)

    def lstrip(self, characters: str | None = None) -> ExprT:
        """Remove white space, or those characters, at the beginning.

        >>> values(col("x").str.lstrip("0"), x=["007"])
        ['7']
        """
        return self._value.call("str_lstrip", characters=characters)

    def rstrip(self, characters: str | None = None) -> ExprT:
        """Remove white space, or those characters, at the end.

        >>> values(col("x").str.rstrip(), x=[" a "])
        [' a']
        """
        return self._value.call("str_rstrip", characters=characters)

    def contains(self, pattern: str, regex: bool = False) -> ExprT:
        """Whether a constant occurs in it; ``regex``: whether a regular expression (RE2) matches somewhere.

        >>> values(col("x").str.contains("b"), x=["abc", "x"])
        [True, False]
        """
        return self._value.call("str_contains", pattern, regex=regex)

    def starts_with(self, prefix: str) -> ExprT:
        """Whether it begins with a constant.

        >>> values(col("x").str.starts_with("a"), x=["abc", "x"])
        [True, False]
        """
        return self._value.call("str_starts_with", prefix)

    def ends_with(self, suffix: str) -> ExprT:
        """Whether it ends with a constant.

        >>> values(col("x").str.ends_with("c"), x=["abc", "x"])
        [True, False]
        """
        return self._value.call("str_ends_with", suffix)

    def replace(self, pattern: str, replacement: str, regex: bool = False) -> ExprT:
        r"""Replace every occurrence; ``regex``: RE2 syntax, groups as ``\1``.

        >>> values(col("x").str.replace("a", "o"), x=["banana"])
        ['bonono']
        """
        return self._value.call("str_replace", pattern, replacement, regex=regex)

    def slice(self, start: int, stop: int | None = None) -> ExprT:
        """Return Python's ``value[start:stop]``; negative positions count from the end.

        >>> values(col("x").str.slice(1, -1), x=["(a)"])
        ['a']
        """
        if not isinstance(start, int) or not isinstance(stop, int | None):
            raise SchemaError(f"str.slice({start!r}, {stop!r}): positions are integers")
        return self._value.call("str_slice", start=start, stop=stop)

    def concat(self, *others: Any, separator: str = "") -> ExprT:
        """Concatenate with others (expressions or constants); null when one is null.

        >>> values(col("x").str.concat("-", col("y")), x=["a", None], y=["b", "c"])
        ['a-b', None]
        """
        return self._value.call("str_concat", *others, separator=separator)

    def concat_ws(self, separator: str, *others: Any) -> ExprT:
        """Join the texts that are not null with a separator; "" where all are null.

        >>> values(col("x").str.concat_ws("-", col("y"), "z"), x=["a", None], y=["b", None])
        ['a-b-z', 'z']
        """
        return self._value.call("str_concat_ws", *others, separator=separator)

    def title(self) -> ExprT:
        """Convert each word's first letter to upper case, the others to lower case.

        >>> values(col("x").str.title(), x=["new YORK"])
        ['New York']
        """
        return self._value.call("str_title")

    def capitalize(self) -> ExprT:
        """Convert the first character to upper case, the others to lower case.

        >>> values(col("x").str.capitalize(), x=["new YORK"])
        ['New york']
        """
        return self._value.call("str_capitalize")

    def reverse(self) -> ExprT:
        """Reverse the order of characters.

        >>> values(col("x").str.reverse(), x=["abc"])
        ['cba']
        """
        return self._value.call("str_reverse")

    def repeat(self, count: Any) -> ExprT:
        """Repeat the text; "" for 0 and less.

        >>> values(col("x").str.repeat(3), x=["ab"])
        ['ababab']
        """
        return self._value.call("str_repeat", count)

    def left(self, count: int) -> ExprT:
        """Return the first characters; negative: all but the last ones.

        >>> values(col("x").str.left(2), x=["abc", "a"])
        ['ab', 'a']
        """
        return self.slice(0, count)

    def right(self, count: int) -> ExprT:
        """Return the last characters; negative: all but the first ones.

        >>> values(col("x").str.right(2), x=["abc", "a"])
        ['bc', 'a']
        """
        if not isinstance(count, int):
            raise SchemaError(f"str.right({count!r}): the number of characters is an int")
        return self.slice(-count) if count else self.slice(0, 0)

    def pad_left(self, width: int, fill: str = " ") -> ExprT:
        """Pad at the beginning with a character to a width; longer texts stay.

        >>> values(col("x").str.pad_left(3, "0"), x=["7", "1234"])
        ['007', '1234']
        """
        return self._value.call("str_pad_left", **_padding(width, fill))

    def pad_right(self, width: int, fill: str = " ") -> ExprT:
        """Pad at the end with a character to a width; longer texts stay.

        >>> values(col("x").str.pad_right(3, "."), x=["7"])
        ['7..']
        """
        return self._value.call("str_pad_right", **_padding(width, fill))

    def strip_prefix(self, prefix: str) -> ExprT:
        """Remove a constant at the beginning, once.

        >>> values(col("x").str.strip_prefix("re"), x=["rerun", "run"])
        ['run', 'run']
        """
        return self._value.call("str_strip_prefix", prefix)

    def strip_suffix(self, suffix: str) -> ExprT:
        """Remove a constant at the end, once.

        >>> values(col("x").str.strip_suffix(".csv"), x=["a.csv", "b"])
        ['a', 'b']
        """
        return self._value.call("str_strip_suffix", suffix)

    def like(self, pattern: str) -> ExprT:
        r"""Whether all of it matches SQL's pattern: % is any text, _ any character, a backslash takes their meaning.

        >>> values(col("x").str.like("a%_"), x=["abc", "a", "xa"])
        [True, False, False]
        """
        return self._value.call("str_like", pattern)

    def ilike(self, pattern: str) -> ExprT:
        """Whether all of it matches SQL's pattern, in upper or lower case.

        >>> values(col("x").str.ilike("a%"), x=["Abc", "x"])
        [True, False]
        """
        return self._value.call("str_ilike", pattern)

    def matches(self, pattern: str) -> ExprT:
        """Whether a regular expression (RE2) matches somewhere; ``^`` and ``$`` bind it to the whole.

        >>> values(col("x").str.matches("^[0-9]+$"), x=["12", "1a"])
        [True, False]
        """
        return self._value.call("str_matches", pattern)

    def count_matches(self, pattern: str, regex: bool = False) -> ExprT:
        """Count the occurrences of a constant, or of a regular expression, without overlap.

        >>> values(col("x").str.count_matches("a"), x=["banana", ""])
        [3, 0]
        """
        return self._value.call("str_count_matches", pattern, regex=regex)

    def extract(self, pattern: str, group: int = 1) -> ExprT:
        """Return a group of the first match of a regular expression, 0 is the whole match; null where none matches.

        >>> values(col("x").str.extract("([a-z]+)-([0-9]+)", 2), x=["ab-12", "ab"])
        ['12', None]
        """
        if isinstance(group, bool) or not isinstance(group, int):
            raise SchemaError(f"str.extract(group={group!r}): the group is an int, 0 for the whole match")
        return self._value.call("str_extract", pattern, group=group)

    def extract_all(self, pattern: str) -> ExprT:
        """Return all matches of a regular expression, as a list.

        >>> values(col("x").str.extract_all("[0-9]+"), x=["a1b22", "c"])
        [['1', '22'], []]
        """
        return self._value.call("str_extract_all", pattern)

    def replace_all(self, pattern: str, replacement: str, regex: bool = False) -> ExprT:
        """Replace every occurrence: ``replace`` under the name that Polars has.

        >>> values(col("x").str.replace_all("[0-9]", "#", regex=True), x=["a1b2"])
        ['a#b#']
        """
        return self.replace(pattern, replacement, regex)

    def split(self, separator: str, regex: bool = False) -> ExprT:
        """Return the parts between separators, as a list.

        >>> values(col("x").str.split(","), x=["a,b,", ""])
        [['a', 'b', ''], ['']]
        """
        return self._value.call("str_split", separator, regex=regex)

    def split_part(self, separator: str, n: int) -> ExprT:
        """Return the n-th part between separators, from 1, negative from the end; "" where there is none.

        An empty separator parts nothing: the whole text is part 1 and part -1.

        >>> values(col("x").str.split_part("/", 2), x=["a/b/c", "a"])
        ['b', '']
        """
        if isinstance(n, bool) or not isinstance(n, int) or n == 0:
            raise SchemaError(f"str.split_part(n={n!r}): parts are counted from 1, or from -1 backward")
        return self._value.call("str_split_part", separator, n=n)

    def find(self, text: str) -> ExprT:
        """Return the index of a constant's first occurrence, in characters from 0, -1 without one, as in Python.

        >>> values(col("x").str.find("b"), x=["äb", "c"])
        [1, -1]
        """
        return self._value.call("str_find", text)

    def encode(self, encoding: TextEncoding) -> ExprT:
        """Encode as digits, ``hex`` or ``base64``, or as binary of ``utf-8``.

        >>> values(col("x").str.encode("base64"), x=["abc", None])
        ['YWJj', None]
        """
        return self._value.call("str_encode", encoding=encoding)

    def decode(self, encoding: TextEncoding) -> ExprT:
        """Decode digits in ``hex`` or ``base64`` to binary, or ``utf-8`` bytes to text.

        >>> values(col("x").str.decode("hex").str.decode("utf-8"), x=["616263"])
        ['abc']
        """
        return self._value.call("str_decode", encoding=encoding)

    def url_encode(self) -> ExprT:
        """Encode what is no letter of ASCII, no digit and none of -._~ as %20 and the like.

        >>> values(col("x").str.url_encode(), x=["a b/é"])
        ['a%20b%2F%C3%A9']
        """
        return self._value.call("str_url_encode")

    def translate(self, characters: str, others: str) -> ExprT:
        """Replace each of some characters by the one at its place among others; those that have none are left out.

        >>> values(col("x").str.translate("abc", "AB"), x=["cabbage"])
        ['ABBAge']
        """
        return self._value.call("str_translate", characters, others)

    def normalize(self, form: NormalForm = "NFC") -> ExprT:
        """Return the text in one of Unicode's normal forms: NFC, NFD, NFKC or NFKD.

        >>> values(col("x").str.normalize().str.length(), x=["e\u0301"])
        [1]
        """
        return self._value.call("str_normalize", form=form)

    def len_bytes(self) -> ExprT:
        """Return the number of bytes, of UTF-8; also of a binary value.

        >>> values(col("x").str.len_bytes(), x=["añ😀", ""])
        [7, 0]
        """
        return self._value.call("str_len_bytes")

    def ascii(self) -> ExprT:
        """Return the Unicode code of the first character, 0 of an empty text.

        >>> values(col("x").str.ascii(), x=["abc", ""])
        [97, 0]
        """
        return self._value.call("str_ascii")

    def to_integer(self, base: int = 10, strict: bool = True) -> ExprT:
        """Return the integer that a text is in a base of 2 to 36; others fail the job, or are null if not strict.

        >>> values(col("x").str.to_integer(16, strict=False), x=["ff", "-7F", "g"])
        [255, -127, None]
        """
        return self._value.call("str_to_integer", base=base, strict=strict)

    def extract_groups(self, pattern: str) -> ExprT:
        """Return the groups of the first match of a regular expression, as a struct; null where none matches.

        Fields have the names that groups have, or their numbers from 1.

        >>> values(col("x").str.extract_groups("(?P<key>[a-z]+)=([0-9]+)"), x=["a=1", "b"])
        [{'key': 'a', '2': '1'}, None]
        """
        return self._value.call("str_extract_groups", pattern)

    def jaro(self, other: Any) -> ExprT:
        """Return Jaro's similarity of two texts, 0 to 1, by characters.

        >>> values(col("x").str.jaro("martha").round(4), x=["marhta", "xyz"])
        [0.9444, 0.0]
        """
        return self._value.call("str_jaro", other)

    def jaro_winkler(self, other: Any) -> ExprT:
        """Return the similarity of Jaro and Winkler, 0 to 1: a common beginning makes similar texts more similar.

        >>> values(col("x").str.jaro_winkler("martha").round(4), x=["marhta", "xyz"])
        [0.9611, 0.0]
        """
        return self._value.call("str_jaro_winkler", other)

    def url_decode(self) -> ExprT:
        """Decode %20 and + to the characters that they stand for in URLs.

        >>> values(col("x").str.url_decode(), x=["a+b%C3%A9"])
        ['a bé']
        """
        return self._value.call("str_url_decode")

    def to_date(self, format: str = "%Y-%m-%d", strict: bool = True) -> ExprT:  # noqa: A002 - as in Polars
        """Return the date that it is by a format of strptime; what is none fails the job, or is null if not strict.

        What is no directive is an error when the plan is made.

        >>> values(col("x").str.to_date("%d.%m.%Y", strict=False), x=["29.2.2024", "29.2.2023"])
        [datetime.date(2024, 2, 29), None]
        """
        return self._value.call("str_to_date", format=format, strict=strict)

    def to_timestamp(self, format: str = "%Y-%m-%d %H:%M:%S", strict: bool = True) -> ExprT:  # noqa: A002
        """Return the timestamp that it is by a format of strptime, in which %f are one to six digits of a fraction.

        With %z, an offset such as +0130, +01:30 or Z, it is a timestamp of UTC. What is no directive is an error when
        the plan is made.

        >>> values(col("x").str.to_timestamp("%Y%m%d %H:%M:%S.%f"), x=["20240229 12:30:00.25"])
        [datetime.datetime(2024, 2, 29, 12, 30, 0, 250000)]
        """
        return self._value.call("str_to_timestamp", format=format, strict=strict)

    def json_get(self, path: str) -> ExprT:
        """Return the value at a path of a JSON text: texts as they are, all else as JSON; null where there is none.

        Each text is read by Python's json, which takes about a microsecond for a row.

        >>> values(col("x").str.json_get("$.a[0].b"), x=['{"a": [{"b": "c"}]}', '{"a": []}', "no JSON"])
        ['c', None, None]
        """
        return self._value.call("str_json_get", path=path)

    def json_parse(self, data_type: Any) -> ExprT:
        """Return the value of a JSON text as a type: a pyarrow type, a name such as "int64", or a schema for a struct.

        Null where the text is no JSON or does not fit. Fields that the type has not are left out, those that the text
        has not are null. Types are bool, numbers, decimals, string, date32, timestamps (in ISO 8601, with an
        offset if the type has a zone and without one else), and lists and structs of them.

        >>> point = pa.schema([("x", pa.int64()), ("tags", pa.list_(pa.string()))])
        >>> values(col("t").str.json_parse(point), t=['{"x": 1, "tags": ["a"]}', "no JSON"])
        [{'x': 1, 'tags': ['a']}, None]
        """
        wanted = pa.struct(list(data_type)) if isinstance(data_type, pa.Schema) else to_data_type(data_type)
        return self._value.call("str_json_parse", pa.scalar(None, wanted))

    def to_number(self, data_type: Any = float, thousands: str = ",", decimal: str = ".") -> ExprT:
        """Return the number that a text is, float64 unless said otherwise; null where it is none.

        Spaces around it and signs between thousands do not count; ``decimal`` is the sign before the fraction.

        >>> values(col("x").str.to_number(), x=["1,234.5", " -7 ", "many"])
        [1234.5, -7.0, None]
        """
        if not isinstance(thousands, str) or not isinstance(decimal, str) or len(decimal) != 1 or thousands == decimal:
            raise SchemaError(f"to_number(thousands={thousands!r}, decimal={decimal!r}): two signs that differ")
        plain = self.strip()
        if thousands:
            plain = StringExpressions(plain).replace(thousands, "")
        if decimal != ".":
            plain = StringExpressions(plain).replace(decimal, ".")
        return plain.call("try_cast", pa.scalar(None, to_data_type(data_type)))

    def levenshtein(self, other: Any) -> ExprT:
        """Return the edits (insert, delete, replace a character) that make it another text.

        >>> values(col("x").str.levenshtein("kitten"), x=["sitting", "kitten"])
        [3, 0]
        """
        return self._value.call("str_levenshtein", other)


def _padding(width: Any, fill: Any) -> dict[str, Any]:
    if isinstance(width, bool) or not isinstance(width, int) or not isinstance(fill, str) or len(fill) != 1:
        raise SchemaError(f"str.pad({width!r}, {fill!r}): the width is an int, and one character fills up")
    return {"width": width, "fill": fill}
