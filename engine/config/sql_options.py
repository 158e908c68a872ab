"""Options of queries in SQL. Declared as those of ``options``, which has them all.

Held by: tests/config/test_loader.py
"""

from __future__ import annotations

from engine.config.config_option import declared as _option

FILES_ENABLED = _option(
    "sql.files.enabled",
    "bool",
    "true",
    "Let statements of SQL name files and folders, to read, write and attach them. Without it they have the registered "
    "tables alone.",
)
RECURSION_ROUNDS_MAX = _option(
    "sql.recursion.rounds-max",
    "int",
    "1000",
    "Number of rounds after which a query of WITH RECURSIVE that still makes rows is an error.",
    minimum=1,
)
