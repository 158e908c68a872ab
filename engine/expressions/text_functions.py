"""Functions of strings: what ``col("x").str`` offers. Positions and lengths count characters, not bytes.

Patterns and replacements are constants; as regular expressions they have RE2's syntax. Null gives null.

Held by: tests/expressions/test_evaluate.py
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

import pyarrow as pa

from engine.expressions.argument_kinds import text, type_of_kind
from engine.expressions.binding import Binding, Datum, Operand, Options, constant_text
from engine.expressions.number_functions import of_array
from engine.expressions.text_patterns import replaced_once
from engine.expressions.text_slices import sliced
from engine.records.arrow_functions import pc
from engine.records.plain_scalars import scalar_of

#: array with a null, on which a malformed regular expression fails; on an empty array it does not
_SAMPLE = pa.nulls(1, pa.string())
#: largest text that repetition makes
_REPEATED_MAX = 1 << 30


def _string_type(operand: Operand) -> pa.DataType:
    return text(operand.type)


def bind_length(operands: Sequence[Operand], _options: Options) -> Binding:
    """Bind the number of characters, as int64."""
    return Binding(lambda texts: pc.cast(pc.utf8_length(texts), pa.int64()), (_string_type(operands[0]),))


def stripping(side: str) -> Callable[[Sequence[Operand], Options], Binding]:
    """Return the binder that strips whitespace, or the characters of the option ``characters``: trim, ltrim, rtrim."""
    whitespace, characters = getattr(pc, f"utf8_{side}_whitespace"), getattr(pc, f"utf8_{side}")

    def bind(operands: Sequence[Operand], options: Options) -> Binding:
        chosen = options.get("characters")
        types = (_string_type(operands[0]),)
        if chosen is None:
            return Binding(whitespace, types)
        return Binding(lambda texts: characters(texts, characters=chosen), types)

    return bind


def bind_contains(operands: Sequence[Operand], options: Options) -> Binding:
    """Bind the search for a constant pattern; option ``regex``."""
    pattern = constant_text(operands, 1, "the pattern of contains")
    if options.get("regex"):
        pc.match_substring_regex(_SAMPLE, pattern=pattern)
    kernel = pc.match_substring_regex if options.get("regex") else pc.match_substring
    return Binding(lambda texts, _pattern: kernel(texts, pattern=pattern), (_string_type(operands[0]), None))


def affix(name: str) -> Callable[[Sequence[Operand], Options], Binding]:
    """Return the binder of starts_with or ends_with."""
    kernel = getattr(pc, name)

    def bind(operands: Sequence[Operand], _options: Options) -> Binding:
        pattern = constant_text(operands, 1, "the pattern of starts_with and ends_with")
        return Binding(lambda texts, _pattern: kernel(texts, pattern=pattern), (_string_type(operands[0]), None))

    return bind


def bind_replace(operands: Sequence[Operand], options: Options) -> Binding:
    """Bind the replacement of every occurrence of a constant pattern; options ``regex``, ``first``: only once."""
    pattern = constant_text(operands, 1, "the pattern of replace")
    replacement = constant_text(operands, 2, "the replacement")
    is_regex = bool(options.get("regex"))
    if is_regex:
        pc.replace_substring_regex(_SAMPLE, pattern=pattern, replacement=replacement)
    elif not pattern:
        # Arrow looks for nothing without end; as a regular expression it is found between characters, as in Python
        is_regex, replacement = True, replacement.replace("\\", "\\\\")
    data_type, count = _string_type(operands[0]), 1 if options.get("first") else None
    if is_regex and count == 1:
        once = of_array(replaced_once(pattern, replacement))
        return Binding(lambda texts, _pattern, _replacement: once(texts), (data_type, None, None))
    kernel = pc.replace_substring_regex if is_regex else pc.replace_substring

    def replace(texts: Datum, _pattern: Datum, _replacement: Datum) -> Datum:
        return kernel(texts, pattern=pattern, replacement=replacement, max_replacements=count)

    return Binding(replace, (data_type, None, None))


def bind_slice(operands: Sequence[Operand], options: Options) -> Binding:
    """Bind Python's ``text[start:stop]``."""
    start, behind = int(options.get("start") or 0), options.get("stop")
    stop = None if behind is None else int(behind)

    def parts(texts: Datum) -> Datum:
        if isinstance(texts, pa.Scalar):
            return sliced(pa.array([texts.as_py()], texts.type), start, stop)[0]
        return sliced(texts, start, stop)

    return Binding(parts, (_string_type(operands[0]),))


def bind_concat(operands: Sequence[Operand], options: Options) -> Binding:
    """Bind the strings joined by the option ``separator``; null when one is null."""
    types = {_string_type(operand) for operand in operands}
    data_type = pa.large_string() if pa.large_string() in types else pa.string()
    separator = scalar_of(options.get("separator") or "", data_type)
    return Binding(lambda *texts: pc.binary_join_element_wise(*texts, separator), tuple(data_type for _ in operands))


def padding(side: str) -> Callable[[Sequence[Operand], Options], Binding]:
    """Return the binder that fills up to ``width`` characters: lpad, rpad."""
    kernel = getattr(pc, f"utf8_{side}")

    def bind(operands: Sequence[Operand], options: Options) -> Binding:
        width, fill = int(options.get("width") or 0), str(options.get("fill") or " ")
        return Binding(lambda texts: kernel(texts, width=width, padding=fill), (_string_type(operands[0]),))

    return bind


def bind_repeat(operands: Sequence[Operand], _options: Options) -> Binding:
    """Bind the text written several times; less than once is no text."""

    def repeated(texts: Datum, counts: Datum) -> Datum:
        if isinstance(texts, pa.Scalar) and not texts.is_valid and not isinstance(counts, pa.Scalar):
            return pa.nulls(len(counts), texts.type)  # of which Arrow makes an array without a buffer
        sizes = pc.cast(pc.binary_length(texts), pa.int64())
        times = pc.max_element_wise(counts, 0, skip_nulls=False)
        times = pc.if_else(pc.and_(pc.equal(sizes, 0), pc.is_valid(times)), scalar_of(0), times)
        if pc.any(pc.greater(times, pc.divide(_REPEATED_MAX, pc.max_element_wise(sizes, 1)))).as_py():
            raise pa.ArrowInvalid("a text of more than 1 GiB")
        return pc.binary_repeat(texts, times)

    counts = type_of_kind("integer", operands[1].type) or operands[1].type
    return Binding(repeated, (_string_type(operands[0]), counts), can_raise=True)


def stripping_constant(end: str) -> Callable[[Sequence[Operand], Options], Binding]:
    """Return the binder that takes a constant away once, from the begin (prefix) or the end (suffix)."""
    is_prefix = end == "prefix"
    test = pc.starts_with if is_prefix else pc.ends_with

    def bind(operands: Sequence[Operand], _options: Options) -> Binding:
        constant = constant_text(operands, 1, f"the {end}")
        if not constant:
            return Binding(lambda texts, _constant: texts, (_string_type(operands[0]), None))
        start, stop = (len(constant), None) if is_prefix else (0, -len(constant))

        def stripped(texts: Datum, _constant: Datum) -> Datum:
            # Arrow's slice of bytes has a size below 0 for texts that are shorter
            rest = pc.utf8_slice_codeunits(texts, start=start, stop=stop)
            return pc.if_else(test(texts, pattern=constant), rest, texts)

        return Binding(stripped, (_string_type(operands[0]), None))

    return bind


def bind_concat_ws(operands: Sequence[Operand], options: Options) -> Binding:
    """Bind the strings that are not null, joined by the option ``separator``; never null."""
    types = {_string_type(operand) for operand in operands}
    data_type = pa.large_string() if pa.large_string() in types else pa.string()
    separator = scalar_of(options.get("separator") or "", data_type)

    def joined(first: Datum, *texts: Datum) -> Datum:
        # Arrow leaves a row out where all are null
        is_nothing = reduce(pc.and_, map(pc.is_null, (first, *texts)))
        texts = (pc.if_else(is_nothing, scalar_of("", data_type), first), *texts)
        return pc.binary_join_element_wise(*texts, separator, null_handling="skip")

    return Binding(joined, tuple(data_type for _ in operands))
