"""Functions of characters and digits: translate, codes of characters, integers as digits and back, JSON of values.

Held by: tests/expressions/test_character_functions.py
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import pyarrow as pa

from engine.expressions.argument_kinds import type_of_kind
from engine.expressions.binding import Binding, NoMatchError, Operand, Options, constant_text
from engine.expressions.character_kernels import digits_of, first_codes, integers_of, texts_of_codes, translated
from engine.expressions.digest_functions import as_bytes
from engine.expressions.number_functions import of_array
from engine.expressions.text_patterns import named_groups, names_of_groups
from engine.records.arrow_functions import pc
from engine.records.plain_scalars import scalar_of

_INT64: Final = pa.int64()


def _where_valid(like: pa.Array, found: pa.Array) -> pa.Array:
    return pc.if_else(pc.is_valid(like), found, scalar_of(None, found.type)) if like.null_count else found


def bind_translate(operands: Sequence[Operand], _options: Options) -> Binding:
    """Bind a text with each of some characters replaced by the one at its place among others, or left out."""
    data_type = type_of_kind("text", operands[0].type) or operands[0].type
    sources = constant_text(operands, 1, "the characters of translate")
    targets = constant_text(operands, 2, "the characters that translate writes")
    pairs = {ord(one): ord(targets[at]) if at < len(targets) else -1 for at, one in reversed([*enumerate(sources)])}
    codes = list(pairs), list(pairs.values())
    kernel = of_array(lambda texts: _where_valid(texts, pc.cast(translated(as_bytes(texts), *codes), data_type)))
    return Binding(lambda texts, _sources, _targets: kernel(texts), (data_type, None, None))


def bind_ascii(operands: Sequence[Operand], _options: Options) -> Binding:
    """Bind the code of the first character, 0 of an empty text."""
    data_type = type_of_kind("text", operands[0].type) or operands[0].type
    return Binding(of_array(lambda texts: _where_valid(texts, first_codes(as_bytes(texts)))), (data_type,))


def bind_chr(operands: Sequence[Operand], _options: Options) -> Binding:
    """Bind the character of a code."""
    data_type = type_of_kind("integer", operands[0].type)

    def characters(codes: pa.Array) -> pa.Array:
        return _where_valid(codes, pc.cast(texts_of_codes(pc.fill_null(codes, 0)), pa.string()))

    return Binding(of_array(characters), (data_type,), can_raise=True)


def digits(bits: str) -> Callable[[Sequence[Operand], Options], Binding]:
    """Return the binder of an integer's bits as digits of 1 or 4 bits."""

    def bind(operands: Sequence[Operand], _options: Options) -> Binding:
        data_type = type_of_kind("integer", operands[0].type)
        kernel = of_array(lambda values: _where_valid(values, pc.cast(digits_of(values, int(bits)), pa.string())))
        return Binding(kernel, (data_type,))

    return bind


def bind_to_integer(operands: Sequence[Operand], options: Options) -> Binding:
    """Bind the integer that a text is in the option ``base``; with ``strict`` others fail, else they are null."""
    data_type = type_of_kind("text", operands[0].type) or operands[0].type
    base, is_strict = int(options.get("base") or 10), options.get("strict") is not False
    if not 2 <= base <= 36:
        raise NoMatchError(f"base {base}: from 2 to 36")

    def numbers(texts: pa.Array) -> pa.Array:
        found, fits = integers_of(as_bytes(texts), base)
        good = pc.and_(pc.equal(fits, 1), pc.is_valid(texts))
        wrong = pc.and_(pc.invert(good), pc.is_valid(texts))
        if is_strict and pc.any(wrong).as_py():
            raise pa.ArrowInvalid(f"{texts[pc.index(wrong, True).as_py()].as_py()[:80]!r} is no integer of base {base}")
        return pc.if_else(good, found, scalar_of(None, _INT64))

    return Binding(of_array(numbers), (data_type,), can_raise=is_strict)


def bind_normalize(operands: Sequence[Operand], options: Options) -> Binding:
    """Bind a text in one of Unicode's normal forms."""
    form, data_type = str(options.get("form")), type_of_kind("text", operands[0].type) or operands[0].type
    if form not in ("NFC", "NFD", "NFKC", "NFKD"):
        raise NoMatchError(f"normalize to {form!r}: choose one of NFC, NFD, NFKC, NFKD")
    return Binding(lambda texts: pc.utf8_normalize(texts, form=form), (data_type,))


def bind_len_bytes(operands: Sequence[Operand], _options: Options) -> Binding:
    """Bind the number of bytes of a text or binary value."""
    data_type = type_of_kind("binary", operands[0].type) or operands[0].type
    return Binding(lambda values: pc.cast(pc.binary_length(values), _INT64), (data_type,))


def bind_extract_groups(operands: Sequence[Operand], _options: Options) -> Binding:
    """Bind the groups of the first match of a regular expression, as a struct; null where none matches."""
    pattern = constant_text(operands, 1, "the pattern of extract_groups")
    data_type = type_of_kind("text", operands[0].type) or operands[0].type
    named, count = named_groups(pattern)
    if not count:
        raise NoMatchError("the pattern of extract_groups has no group: write parts of it in ( and )")
    names = names_of_groups(pattern)

    def groups(texts: pa.Array) -> pa.Array:
        found = pc.extract_regex(texts, pattern=named)
        parts = [pc.struct_field(found, indices=[f"g{at + 1}"]) for at in range(count)]
        return pa.StructArray.from_arrays(parts, names=names, mask=pc.is_null(found))

    groups(pa.nulls(1, data_type))
    kernel = of_array(groups)
    return Binding(lambda texts, _pattern: kernel(texts), (data_type, None))
