"""Exact: the base of structs that decide which rows come out: they are understood whole, or refused.

    class FilterOperator(Exact, frozen=True, tag="filter")

A field at its default is not written, and one that is unknown is an error. So a job of a newer program runs under an
older one as long as it uses nothing that the older one does not have, and else is refused by the name of what is
missing. All that a JobGraph or a task's description consists of is Exact, but for ids.

Held by: tests/gateways/test_forms.py
"""

from __future__ import annotations

import msgspec


class Exact(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A struct without fields of its own."""
