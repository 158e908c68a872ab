"""The words that parameters of the API take, as types: an editor completes them, and a misspelt one is a type error.

At run time the calls check words themselves, join types in more spellings than these.

Held by: tests/api/test_choices.py
"""

from typing import Literal, TypeAlias

JoinHow: TypeAlias = Literal[
    "inner",
    "left",
    "right",
    "full",
    "outer",
    "semi",
    "anti",
    "cross",
    "left_outer",
    "right_outer",
    "full_outer",
    "left_semi",
    "left_anti",
    "leftouter",
    "rightouter",
    "fullouter",
    "leftsemi",
    "leftanti",
]
AsofDirection: TypeAlias = Literal["backward", "forward", "nearest"]
KeepRow: TypeAlias = Literal["first", "last", "any"]
OnError: TypeAlias = Literal["fail", "null", "skip", "collect"]
OnBadRow: TypeAlias = Literal["fail", "skip"]
SchemaMode: TypeAlias = Literal["strict", "union"]
WriteMode: TypeAlias = Literal["error", "overwrite", "append", "overwrite_partitions"]
DatabaseMode: TypeAlias = Literal["error", "append", "overwrite", "upsert"]
BatchFormat: TypeAlias = Literal["arrow", "pandas", "numpy"]
ExplainFormat: TypeAlias = Literal["text", "json", "html"]
IpcFormat: TypeAlias = Literal["file", "stream"]
