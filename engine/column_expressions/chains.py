"""Chains of one operator: ``a | b | c ...`` of very many terms becomes a tree that recursion can walk.

    reduce(or_, conditions)        ((a | b) | c) | d ...            as deep as it has terms, as Python builds it
                                   (a | b) | (c | d) ...            more than CHAINED_MAX terms, in pairs
    reduce(add, texts), concat     concat(a, b, c, ...)             one call, whatever their number

Terms stay in their order, and up to CHAINED_MAX of them the tree is the one that was written. Beyond that numbers are
added in pairs: the last digits of a sum of floats may differ from those of one that goes from left to right (they are
nearer to the exact ones), and a sum of integers overflows where the sum of a part does. A chain is joined when its
expression is asked for, not with each term.

Held by: tests/column_expressions/test_chains.py
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import reduce
from typing import Any, Final, NamedTuple, Protocol

import pyarrow as pa

from engine.expressions.literals import literal_scalar
from engine.graph.expression import CHAINED_MAX, Call, Expression, Literal, joined

#: associative functions: terms may be grouped in any way as long as their order stays
_CHAINED: Final = frozenset({"and", "or", "add", "str_concat"})


class Part(Protocol):
    """A value of a chain: an ``Expr``."""

    @property
    def chain(self) -> Chain | None:
        """The chain that it was composed by, where it was."""
        ...

    @property
    def expression(self) -> Expression:
        """The expression that computes it."""
        ...


class Chain(NamedTuple):
    """Two values that a function puts together, either of which may be such a chain itself."""

    function: str
    left: Part
    right: Part
    options: Mapping[str, Any]
    #: depth of nested calls of the function
    depth: int

    def expression(self) -> Expression:
        """Return the chain as one expression."""
        if self.function == "str_concat":
            return Call(self.function, tuple(self._terms()), dict(self.options))
        if self.depth <= CHAINED_MAX:
            return Call(self.function, (self.left.expression, self.right.expression))
        terms = list(self._terms())
        if self.function == "add" and any(map(_is_interval, terms)):
            # A month more twice is not two months more: these are added to a day one after the other.
            return reduce(lambda before, term: Call(self.function, (before, term)), terms)
        return joined(self.function, terms)

    def _terms(self) -> Iterator[Expression]:
        waiting = [self.right, self.left]
        while waiting:
            part = waiting.pop()
            chain = part.chain
            if chain is not None and chain.function == self.function and chain.options == self.options:
                waiting += (chain.right, chain.left)
            else:
                yield part.expression


def is_chained(function: str, count: int) -> bool:
    """Whether a function of so many values is a chain of calls with two."""
    return function in _CHAINED and (count == 2 or (count > 2 and function == "str_concat"))


def chain_of(function: str, left: Part, right: Part, options: Mapping[str, Any]) -> Chain:
    """Return the chain of two values."""
    chains = (part.chain for part in (left, right))
    depths = (one.depth for one in chains if one is not None and (one.function, one.options) == (function, options))
    return Chain(function, left, right, options, 1 + max(depths, default=0))


def _is_interval(term: Expression) -> bool:
    return isinstance(term, Literal) and term.value is None and pa.types.is_interval(literal_scalar(term).type)
