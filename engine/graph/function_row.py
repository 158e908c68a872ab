"""One row of the table of functions: what is known of a function before any type is.

    FunctionRow(name, arguments, kernel, result)

``arguments`` are kinds of argument, one word each (``engine.expressions.argument_kinds`` says which types a kind
takes, and which it widens to):

    number float integer bool text constant binary moment list map struct any      what the argument must be
    same                 one common type with all other arguments of this kind
    a word with ?        may be left out                a word with *    any number of them, also none

``kernel`` is where the work is done:

    arrow:sqrt                              the function of pyarrow.compute, options of the call by name
    comparison:bind_between                 a binder in engine.expressions: operands, options -> Binding
    comparison:comparing:less_equal         the binder that a factory there returns for that text

``result`` says which type comes out, for the reference and its test: a type's name; ``same`` is the common type of
the arguments, ``first`` the type of the first one, ``-`` is said by the function's own text.

Held by: tests/expressions/test_function_table.py
"""

from __future__ import annotations

from typing import Final, Literal

import msgspec

#: values for which a function fails. ``never``: none. ``bad text``: only bytes that are no UTF-8. ``values``: some
Fails = Literal["never", "bad text", "values"]
#: nulls of the result. ``any``: null where an argument is null. ``own``: as the function's text describes
Nulls = Literal["any", "own"]

NEVER: Final = "never"
BAD_TEXT: Final = "bad text"
VALUES: Final = "values"


class FunctionRow(msgspec.Struct, frozen=True):
    """A function by its name in ``Call``."""

    name: str
    arguments: tuple[str, ...]
    kernel: str
    result: str
    fails: Fails = "never"
    nulls: Nulls = "any"
    #: True if the same row gives the same value each time; else it is neither moved nor evaluated twice
    is_deterministic: bool = True
    #: True for what users cannot call: parts that the API composes aggregates of, questions that SQL alone asks
    is_internal: bool = False

    @property
    def arity(self) -> tuple[int, int | None]:
        """Least and greatest number of arguments, None where any number is possible."""
        least = sum(not kind.endswith(("?", "*")) for kind in self.arguments)
        return least, None if self.arguments[-1:] and self.arguments[-1].endswith("*") else len(self.arguments)

    def kind(self, index: int) -> str:
        """Return the kind of an argument by its position."""
        return self.arguments[min(index, len(self.arguments) - 1)].rstrip("?*")
