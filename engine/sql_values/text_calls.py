"""SQL's functions of texts: patterns, separators, widths and counts are constants or columns.

    s LIKE 'a%'                 str.like("a%")
    s LIKE p                    the same for each pattern that there is (see ``varying_constants``)
    substring(s, 2, n)          s[1:n + 1], positions from 1, negative ones from the end
    lpad(s, 5, 'ab')            what is repeated and cut, in front of the text cut to the width

Held by: tests/sql/test_text_calls.py
"""

from __future__ import annotations

from functools import partial
from typing import Final

import pyarrow as pa

from engine.column_expressions.expression import Expr
from engine.column_expressions.expressions import lit, when
from engine.errors import NotYetSupportedError, PlanError
from engine.sql_values.arguments import Arguments, Function, as_option, constant_of, value_of
from engine.sql_values.constants import computed

#: position behind all texts
_END: Final = 2**31 - 1


def _call(name: str, *options: str) -> Function:
    """Return a function of texts whose further arguments are those of ours, or its options by name."""

    def call(arguments: Arguments) -> Expr:
        text, *others = arguments
        if not options:
            return text.call(name, *others)
        return text.call(name, **dict(zip(options, map(as_option, others), strict=False)))

    return call


def sliced(text: Expr, start: Expr, stop: Expr | None) -> Expr:
    """Return the slice of a text as Python has it; its positions may be columns."""
    behind = None if stop is None else as_option(computed(stop))
    return text.call("str_slice", start=as_option(computed(start)), stop=behind)


def _substring(arguments: Arguments) -> Expr:
    text, start, *length = arguments
    return _forward(text, start, *map(_length, length))


def _forward(text: Expr, start: Expr, length: Expr | None = None) -> Expr:
    first = when(start > 0).then(start - 1).when(start < 0).then(start).when(start == 0).then(0)
    if length is None:
        return sliced(text, first, None)
    last = start + length
    # from the end, as in DuckDB and Spark
    from_end = when(last >= 0).then(_END).otherwise(last)
    return sliced(text, first, when(start < 0).then(from_end).otherwise(_greater(first, last - 1)))


def _length(count: Expr) -> Expr:
    """Return a length, which is not negative. Raises: PlanError for a constant that is."""
    said = "substr() with a negative length, of which dialects differ; write abs(n), or pass dialect='duckdb'"
    known = value_of(count)
    if isinstance(known, int) and known < 0:
        raise PlanError(said)
    return count if known is not None else count.call("require", (count >= 0) | count.is_null(), message=said)


def _in_either_way(arguments: Arguments) -> Expr:
    """Return a part of a text as DuckDB has it: that of a negative length ends in front of its place."""
    text, start, count = arguments
    before = when(start > 0).then(start - 1).when(start < 0).then(start)
    begin = when(start > 0).then(_greater(lit(0), before + count)).when(start < 0).then(before + count)
    backward = sliced(text, begin, before)
    forward = _forward(text, start, when(count > 0).then(count).otherwise(0))
    backward = when(start == 0).then("").otherwise(backward)
    return when(count.is_null()).then(None).when(count < 0).then(backward).otherwise(forward)


def _greater(one: Expr, other: Expr) -> Expr:
    """Return the greater of two numbers, null where one is null: greatest() passes nulls over."""
    return when(one >= other).then(one).when(one < other).then(other)


def _left(arguments: Arguments) -> Expr:
    return sliced(arguments[0], lit(0), arguments[1])


def _right(arguments: Arguments) -> Expr:
    text, count = arguments
    return sliced(text, -count, when(count == 0).then(0).otherwise(_END))


def _trim(name: str) -> Function:
    """Return a function that takes away blanks, or what is said; in Python line ends are white, too."""
    trimmed = _call(name, "characters")
    return lambda arguments: trimmed(arguments if len(arguments) > 1 else [*arguments, lit(" ")])


def _pad(arguments: Arguments, *, is_left: bool) -> Expr:
    """Return a text padded to a width; what is longer is cut."""
    text, wanted = arguments[0], arguments[1]
    fill = arguments[2] if len(arguments) > 2 else lit(" ")
    width = computed(_greater(wanted, lit(0)))
    count, character = value_of(width), value_of(fill)
    if count is not None and isinstance(character, str) and len(character) == 1:
        padded = text.str.pad_left(count, character) if is_left else text.str.pad_right(count, character)
        return padded.str.slice(0, count)
    missing = _greater(width - text.str.length(), lit(0))
    beside, kept = sliced(fill.str.repeat(missing), lit(0), missing), sliced(text, lit(0), width)
    return beside + kept if is_left else kept + beside


def _regexp_replace(arguments: Arguments) -> Expr:
    flags = str(constant_of(arguments[3], "the flags of REGEXP_REPLACE")) if len(arguments) > 3 else ""
    if flags.strip("gims"):
        raise NotYetSupportedError(f"the flags {flags!r} of REGEXP_REPLACE, in SQL (there are g, i, m, s)")
    own = flags.replace("g", "")
    pattern = _with_flags(f"(?{own})" if own else "", arguments[1])
    return arguments[0].call("str_replace", pattern, arguments[2], regex=True, first="g" not in flags)


def _with_flags(written: str, pattern: Expr) -> Expr:
    return computed(lit(written) + pattern) if written else pattern


def _replace(arguments: Arguments) -> Expr:
    text, sought, written = arguments
    if value_of(computed(written.is_null())) is True:
        return lit(None, pa.string())
    # nothing is nowhere in a text, where Python finds it between all characters
    is_nothing = computed(sought == "")
    kept = when(written.is_not_null()).then(text).otherwise(None)
    if value_of(is_nothing) is True:
        return kept
    replaced = text.call("str_replace", sought, written, regex=False)
    return replaced if value_of(is_nothing) is False else when(is_nothing).then(kept).otherwise(replaced)


def _repeat(arguments: Arguments) -> Expr:
    text, count = arguments
    return text.str.repeat(when(count < 0).then(0).otherwise(count))


def _concat_ws(arguments: Arguments) -> Expr:
    return arguments[1].call("str_concat_ws", *arguments[2:], separator=as_option(arguments[0]))


def _matches(arguments: Arguments) -> Expr:
    """Return whether a regular expression matches somewhere."""
    flags = str(constant_of(arguments[2], "the flags of a pattern")) if len(arguments) > 2 else ""
    if flags.strip("ims"):
        raise NotYetSupportedError(f"the flags {flags!r} of a pattern, in SQL (there are i, m, s)")
    return arguments[0].call("str_matches", _with_flags(f"(?{flags})" if flags else "", arguments[1]))


def _split_part(arguments: Arguments) -> Expr:
    return arguments[0].call("str_split_part", arguments[1], n=as_option(arguments[2]))


TEXT_FUNCTIONS: Final[dict[str, Function]] = {
    "btrim": _trim("str_strip"),
    "ltrim": _trim("str_lstrip"),
    "rtrim": _trim("str_rstrip"),
    "left": _left,
    "right": _right,
    "substring": _substring,
    "substring_in_either_way": _in_either_way,
    "replace": _replace,
    "strpos": lambda arguments: arguments[0].call("str_find", arguments[1]) + 1,
    "starts_with": _call("str_starts_with"),
    "ends_with": _call("str_ends_with"),
    "contains": _call("str_contains"),
    "regexp_like": _matches,
    "regexp_count": lambda arguments: arguments[0].call("str_count_matches", arguments[1], regex=True),
    "regexp_replace": _regexp_replace,
    "initcap": _call("str_title"),
    "reverse": _call("str_reverse"),
    "levenshtein": _call("str_levenshtein"),
    "jaro_similarity": _call("str_jaro"),
    "jaro_winkler_similarity": _call("str_jaro_winkler"),
    "split_part": _split_part,
    "lpad": partial(_pad, is_left=True),
    "rpad": partial(_pad, is_left=False),
    "repeat": _repeat,
    "concat_ws": _concat_ws,
}
