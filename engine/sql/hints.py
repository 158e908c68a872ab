"""Hints about joins, in a comment behind SELECT: the join of a table that they name runs so.

    SELECT /*+ BROADCAST(u) */ ...               u goes to all subtasks
    SELECT /*+ SHUFFLE_HASH(u), MERGE(v) */ ...  both sides by their keys, a hash table of u; both sides sorted
    SELECT /*+ REPARTITION_HASH_SECOND(u) */     the names of ``join(hint=...)``, of the join at which u stands

A hint holds for the join whose right side the table is, or for the first one, whose left side it is. Two that say
different things about a join are an error.

Held by: tests/sql/test_hints.py
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from sqlglot import exp

from engine.dialects.parser import place_of, sentence, shown_place
from engine.errors import PlanError
from engine.graph.said_operators import JoinHint, JoinType
from engine.near_names import did_you_mean
from engine.optimizer.join_alternatives import BF, CORRECT_PAIRS, FB, HH, HINTED
from engine.sql.frames import Context

_HINT: Final = re.compile(r"(\w+)\s*\(([^()]*)\)\s*,?\s*")
#: names of hints, and what they are where the table is the left side, and where it is the right one
_HINTS: Final[dict[str, tuple[JoinHint, JoinHint]]] = {
    **dict.fromkeys(
        ("BROADCAST", "BROADCASTJOIN", "MAPJOIN"), (JoinHint.BROADCAST_HASH_FIRST, JoinHint.BROADCAST_HASH_SECOND)
    ),
    "SHUFFLE_HASH": (JoinHint.REPARTITION_HASH_FIRST, JoinHint.REPARTITION_HASH_SECOND),
    **dict.fromkeys(("MERGE", "MERGEJOIN", "SHUFFLE_MERGE"), (JoinHint.REPARTITION_SORT_MERGE,) * 2),
    **{one.value: (one, one) for one in JoinHint if one is not JoinHint.OPTIMIZER_CHOOSES},
}


def place_hints(node: exp.Select, first: exp.Expr, joins: Sequence[exp.Join], context: Context) -> None:
    """Note the hints of a SELECT at its joins. Raises: PlanError for one of no join, or of a name that is not known."""
    noted: dict[int, tuple[str, JoinHint]] = {}
    for hint in _hints_of(node, context):
        for name in hint.names:
            shown = f"{hint.word}({name})"
            join, is_left = _join_of(name, first, joins)
            if join is None:
                raise PlanError(hint.said(_of_no_join(shown, name, [first, *(one.this for one in joins)])))
            if is_comma_like(join):
                raise PlanError(hint.said(f"{shown} of a join without a condition; write JOIN {name} ON ..."))
            found = _HINTS[hint.word][0 if is_left else 1]
            before, known = noted.setdefault(id(join), (shown, found))
            if known is not found:
                raise PlanError(hint.said(f"{shown} contradicts the hint {before} of the same join; write one of them"))
            join.meta["hint"], join.meta["hint_shown"] = found, hint.said(shown)


def check_hint(join: exp.Join, how: str, *, has_keys: bool) -> None:
    """Raise PlanError for a hint that a join of a kind cannot follow."""
    hint = join.meta.get("hint")
    if hint is None:
        return
    pair, _ = HINTED[hint]
    kind = JoinType(how) if has_keys or how != "inner" else JoinType.CROSS
    right = CORRECT_PAIRS[kind]
    if pair in right:
        return
    name = join.this.alias_or_name
    ways = {FB: f"BROADCAST({name})", BF: f"BROADCAST of the left side of {name}", HH: f"SHUFFLE_HASH({name})"}
    why = (
        "the join has no equality of both sides, by which rows are brought together"
        if kind is JoinType.CROSS
        else f"rows of the {'left' if pair == BF else 'right'} side would come back once from each subtask"
    )
    written = " or ".join(way for one, way in ways.items() if one in right)
    raise PlanError(f"{join.meta['hint_shown']} is of no use to {how} joins like this: {why}; write {written}")


def is_comma_like(join: exp.Join) -> bool:
    """Return whether a join has no condition of its own, or is none of equal keys."""
    return not (join.args.get("on") or join.args.get("using") or join.method) or str(join.method).upper() == "ASOF"


class _Hint(NamedTuple):
    """A hint, the tables that it names, and its place as errors have it."""

    word: str
    names: list[str]
    place: str

    def said(self, words: str) -> str:
        """Return the sentence of an error."""
        return f"sql: {self.place}the hint {words}"


def _hints_of(node: exp.Select, context: Context) -> Iterator[_Hint]:
    text = context.session.text
    for comment in _comments_of(node):
        if not comment.startswith("+"):
            continue
        behind = place_of(node.expressions[0]) if node.expressions else None
        begin = text.rfind(f"/*{comment}*/", 0, behind)
        at = 1 + len(comment[1:]) - len(comment[1:].lstrip())
        while comment[at:].strip():
            place = shown_place(text, begin + 2 + at) if begin >= 0 else sentence(node.expressions[0], "")[5:]
            found = _HINT.match(comment, at)
            word = "" if found is None else found[1].upper()
            if found is None or word not in _HINTS:
                raise PlanError(f"sql: {place}no hint {comment[at:].strip()}{_known(word)}")
            hint = _Hint(word, [one.strip().strip('"') for one in found[2].split(",") if one.strip()], place)
            if not hint.names:
                raise PlanError(hint.said(f"{word}() names no table, as in {word}(t)"))
            yield hint
            at = found.end()


def _comments_of(node: exp.Select) -> Iterator[str]:
    """Yield the comments behind SELECT: one on a line of its own is the parser's comment of what comes next."""
    yield from node.comments or ()
    for part in (node.args.get("distinct"), *node.expressions[:1]):
        for one in part.walk(prune=lambda each: isinstance(each, exp.Query)) if part is not None else ():
            if not isinstance(one, exp.Select):
                yield from one.comments or ()


def _known(word: str) -> str:
    return f"{did_you_mean(word, _HINTS)} (there are {', '.join(_HINTS)}, as in BROADCAST(t))"


def _join_of(name: str, first: exp.Expr, joins: Sequence[exp.Join]) -> tuple[exp.Join | None, bool]:
    """Return the join at which a table stands, and whether it is the left side."""
    for join in joins:
        if join.this.alias_or_name.lower() == name.lower():
            return join, False
    is_first = bool(joins) and first.alias_or_name.lower() == name.lower()
    return (joins[0] if is_first else None), True


def _of_no_join(hint: str, name: str, relations: Sequence[exp.Expr]) -> str:
    """Return the words for a hint of a table that no join has."""
    known = [one.alias_or_name for one in relations if one.alias_or_name]
    if name.lower() in (one.lower() for one in known):
        return f"{hint} is about a join, and {name} is joined to nothing here"
    there = f" (there are {', '.join(known)})" if known else ""
    return f"{hint}: no table {name} in FROM{did_you_mean(name, known)}{there}"
