"""Searching in texts: LIKE, regular expressions, parts between separators. Patterns are constants.

Regular expressions have RE2's syntax, so they take a time that grows with the text and nothing else; there is no look
around and no back reference. A pattern that is none is an error at plan time.

    extract      Arrow wants names for groups: (a)(b) ──► (?P<g1>a)(?P<g2>b), the whole as (?P<g0>...)
    extract_all  matches are set in marks, which no text has, and what lies between two of them is the separator:
                 x12y3 ──► x[12]y[3] ──► ]x[12]y[3] split at ][^[]*[ ──► '', '12', '3]' ──► '12', '3'

Held by: tests/expressions/test_text_functions.py
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Sequence
from typing import Final

import pyarrow as pa

from engine.expressions.argument_kinds import text
from engine.expressions.binding import Binding, Datum, NoMatchError, Operand, Options, constant_text
from engine.expressions.list_parts import element_at
from engine.expressions.number_functions import of_array
from engine.expressions.text_replacement import with_replaced
from engine.records.arrow_functions import pc
from engine.records.plain_scalars import scalar_of

#: array with a null, on which a malformed regular expression fails; on an empty array it does not
_SAMPLE: Final = pa.nulls(1, pa.string())
#: code points without a character, now and in future versions of Unicode
_MARKS: Final = tuple(chr(code) for code in range(0xFDD0, 0xFDF0))
#: parts of a regular expression: quoted text, an escape, a class, what opens a group that is one, any other character
_TOKEN: Final = re.compile(
    r"\\Q.*?(?:\\E|\Z)|\\.|\[\^?\]?(?:\[:\^?\w+:\]|\\.|[^\]\\])*\]|(?P<group>\(\?P?<(?P<name>\w+)>|\((?!\?))|.",
    re.DOTALL,
)


def _text_type(operand: Operand) -> pa.DataType:
    return text(operand.type)


def _as_int64(counts: Datum) -> Datum:
    return pc.cast(counts, pa.int64())


def _like_expression(pattern: str) -> str:
    """Return the regular expression of a pattern of LIKE."""
    parts = re.findall(r"\\.|[^\\]|\\\Z", pattern, re.DOTALL)
    if parts[-1] == "\\":
        raise NoMatchError(f"the pattern {pattern!r} of like ends with its escape; a backslash is written twice in it")
    signs = {"%": ".*", "_": "."}
    return rf"(?s)\A{''.join(signs.get(part) or re.escape(part[-1]) for part in parts)}\z"


def like(case: str) -> Callable[[Sequence[Operand], Options], Binding]:
    """Return the binder of SQL's LIKE, which minds ``case`` or ignores it."""
    ignores_case = case == "ignore_case"

    def bind(operands: Sequence[Operand], _options: Options) -> Binding:
        pattern = constant_text(operands, 1, "the pattern of like")
        kernel = pc.match_like
        if "\\" in pattern:  # Arrow finds no backslash at the end of a text
            kernel, pattern = pc.match_substring_regex, _like_expression(pattern)
        kernel(_SAMPLE, pattern=pattern, ignore_case=ignores_case)

        def matched(texts: Datum, _pattern: Datum) -> Datum:
            return kernel(texts, pattern=pattern, ignore_case=ignores_case)

        return Binding(matched, (_text_type(operands[0]), None))

    return bind


def bind_matches(operands: Sequence[Operand], _options: Options) -> Binding:
    """Bind whether a regular expression matches somewhere."""
    pattern = constant_text(operands, 1, "the pattern of matches")
    pc.match_substring_regex(_SAMPLE, pattern=pattern)
    return Binding(
        lambda texts, _pattern: pc.match_substring_regex(texts, pattern=pattern), (_text_type(operands[0]), None)
    )


def bind_count_matches(operands: Sequence[Operand], options: Options) -> Binding:
    """Bind how often a constant, or a regular expression, occurs without overlap."""
    pattern = constant_text(operands, 1, "the pattern of count_matches")
    if not pattern:
        raise NoMatchError("nothing occurs between all characters: give count_matches a pattern")
    kernel = pc.count_substring_regex if options.get("regex") else pc.count_substring
    kernel(_SAMPLE, pattern=pattern)
    return Binding(lambda texts, _pattern: _as_int64(kernel(texts, pattern=pattern)), (_text_type(operands[0]), None))


def named_groups(pattern: str, wanted: Container[int] = range(1000)) -> tuple[str, int]:
    """Return a pattern whose groups are called g1, g2 and so on, as a whole g0, and how many they are.

    Of the groups, only the ``wanted`` ones are kept: each costs time.
    """
    count = 0

    def named(found: re.Match[str]) -> str:
        nonlocal count
        if found["group"] is None:
            return found[0]
        count += 1
        return f"(?P<g{count}>" if count in wanted else "(?:"

    written = _TOKEN.sub(named, pattern)
    return f"(?P<g0>{written})" if 0 in wanted else written, count


def names_of_groups(pattern: str) -> list[str]:
    """Return the names that the groups of a pattern have, ``(?P<name>...)`` or ``(?<name>...)``; their numbers else."""
    found = (one["name"] for one in _TOKEN.finditer(pattern) if one["group"] is not None)
    names = [name or str(number) for number, name in enumerate(found, 1)]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise NoMatchError(f"the pattern {pattern!r} has two groups that are called {twice!r}")
    return names


def replaced_once(pattern: str, replacement: str) -> Callable[[pa.Array], pa.Array]:
    r"""Return a function that replaces the first match in each text; ``\1`` there is a group, ``\\`` a backslash.

    Arrow's own searches twice, and the second time in the match alone, where ``\b`` means something else.
    """
    pieces = [
        int(part[1]) if re.fullmatch(r"\\[0-9]", part) else part.replace("\\\\", "\\").encode()
        for part in re.split(r"(\\[0-9]|\\\\)", replacement)
        if part
    ]
    wanted = sorted({0, *(piece for piece in pieces if isinstance(piece, int))})
    named, _count = named_groups(pattern, wanted)
    columns = [piece if isinstance(piece, bytes) else wanted.index(piece) for piece in pieces]
    return lambda texts: with_replaced(texts, pc.extract_regex_span(texts, pattern=named), columns)


def bind_extract(operands: Sequence[Operand], options: Options) -> Binding:
    """Bind a group of the first match of a regular expression, null where there is none; group 0 is the match."""
    pattern = constant_text(operands, 1, "the pattern of extract")
    pc.match_substring_regex(_SAMPLE, pattern=pattern)
    group = int(options.get("group") or 0)
    named, count = named_groups(pattern, (group,))
    if not 0 <= group <= count:
        raise NoMatchError(f"there is no group {group}: the pattern has {count}, and 0 is the whole match")
    name = f"g{group}"
    data_type = _text_type(operands[0])

    def extracted(texts: Datum, _pattern: Datum) -> Datum:
        return pc.struct_field(pc.extract_regex(texts, pattern=named), indices=[name])

    extracted(pa.nulls(1, data_type), None)
    return Binding(extracted, (data_type, None))


def bind_extract_all(operands: Sequence[Operand], _options: Options) -> Binding:
    """Bind all matches of a regular expression, as a list."""
    pattern = constant_text(operands, 1, "the pattern of extract_all")
    pc.match_substring_regex(_SAMPLE, pattern=pattern)

    def extracted(texts: pa.Array) -> pa.Array:
        begin, end = _unused_marks(texts)
        marked = pc.replace_substring_regex(texts, pattern=f"({pattern})", replacement=f"{begin}\\1{end}")
        marked = pc.binary_join_element_wise(scalar_of(end, texts.type), marked, scalar_of("", texts.type))
        parts = pc.split_pattern_regex(marked, pattern=f"{end}[^{begin}]*{begin}")
        found = pc.list_slice(parts, start=1)
        matches = pc.replace_substring_regex(pc.list_flatten(found), pattern=f"(?s){end}.*$", replacement="")
        kind = type(found)
        offsets, mask = found.offsets, pc.is_null(found)
        offsets = pc.subtract(offsets, offsets[0]) if len(offsets) else offsets
        if not found.null_count:
            return kind.from_arrays(offsets, matches)
        return kind.from_arrays(offsets, matches, mask=mask)

    return Binding(lambda texts, _pattern: of_array(extracted)(texts), (_text_type(operands[0]), None))


def _unused_marks(texts: pa.Array) -> tuple[str, str]:
    """Return two marks that no text has."""
    free = (mark for mark in _MARKS if not pc.any(pc.match_substring(texts, pattern=mark)).as_py())
    first, second = next(free, None), next(free, None)
    if first is None or second is None:
        raise pa.ArrowInvalid("texts with all of U+FDD0 to U+FDEF, which are no characters, cannot be searched")
    return first, second


def _separator(operands: Sequence[Operand], what: str) -> str:
    separator: str = constant_text(operands, 1, f"the separator of {what}")
    if not separator:
        raise NoMatchError(f"the separator of {what} must not be empty")
    return separator


def bind_split(operands: Sequence[Operand], options: Options) -> Binding:
    """Bind the parts between separators, as a list; option ``regex``."""
    separator = _separator(operands, "split")
    kernel = pc.split_pattern_regex if options.get("regex") else pc.split_pattern
    kernel(_SAMPLE, pattern=separator)
    return Binding(lambda texts, _separator: kernel(texts, pattern=separator), (_text_type(operands[0]), None))


def bind_split_part(operands: Sequence[Operand], options: Options) -> Binding:
    """Bind the n-th part between separators, from 1 or, negative, from the end; empty where there is none.

    An empty separator parts nothing: the whole text is the first part and the last one.
    """
    separator: str = constant_text(operands, 1, "the separator of split_part")
    number = int(options.get("n") or 0)
    if number == 0:
        raise NoMatchError("split_part counts from 1, or from -1 backward")

    def part(texts: pa.Array) -> pa.Array:
        if not separator:
            return texts if abs(number) == 1 else pc.if_else(pc.is_null(texts), texts, scalar_of("", texts.type))
        parts = pc.split_pattern(texts, pattern=separator)
        found = element_at(parts, number - 1 if number > 0 else number)
        return pc.if_else(pc.is_null(texts), found, pc.coalesce(found, scalar_of("", texts.type)))

    return Binding(lambda texts, _separator: of_array(part)(texts), (_text_type(operands[0]), None))


def bind_find(operands: Sequence[Operand], _options: Options) -> Binding:
    """Bind the position of a constant, in characters from 0; -1 where it does not occur, as in Python."""
    pattern = constant_text(operands, 1, "the text of find")

    def found(texts: pa.Array) -> pa.Array:
        places = _as_int64(pc.find_substring(texts, pattern=pattern))
        if not pattern or pc.all(pc.string_is_ascii(texts)).as_py() is not False:
            return places
        quoted = pattern.replace("\\E", "\\E\\\\E\\Q")
        before = pc.replace_substring_regex(texts, pattern=f"(?s)\\Q{quoted}\\E.*$", replacement="")
        return pc.if_else(pc.less(places, 0), places, _as_int64(pc.utf8_length(before)))

    return Binding(lambda texts, _pattern: of_array(found)(texts), (_text_type(operands[0]), None))
