"""Messages of the planner as one sentence: the place, the mistake, and similar names.

    Schema error: No field named prce. Did you mean 's.price'? Valid fields are s.price, s.day.
    line 1, column 8: no column prce; did you mean price? (there are price, day)

The parser says where it stopped. The binder names what it does not know: that is looked for in the text.

Held by: tests/sql/test_planner_errors.py
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from difflib import get_close_matches
from typing import Final

from engine.sql.call_table import CALLS, REFUSED, RENAMED
from engine.sql.function_guide import FUNCTION_NAMES
from engine.sql.missing_forms import FORMS
from engine.sql.tokens import Token, after, before, text_of, tokens, words_from
from engine.sql.windows import WINDOW_NAMES

_SHOWN_NAMES: Final = 12
_PLACE: Final = re.compile(r"\bline \d+, column \d+\b")
#: endings that tables do not have
_FILES: Final = frozenset((".parquet", ".csv", ".json", ".jsonl", ".arrow", ".orc", ".avro"))
_CAUSES: Final = re.compile(
    r"(?:DataFusion error: |(?:[^:\n\"]{0,80}\s)?caused by\s+|Error during planning: |Schema error: |SQL error: "
    r"|This feature is not implemented: |Arrow error: |Invalid argument error: |Cast error: |Parser error: "
    r"|Execution error: |Internal error: |External error: )+"
)
_PARSER: Final = re.compile(
    r"(?:ParserError|TokenizerError)\(\"(.*?)(?: at Line: (\d+), Column: (\d+))?\"\)", re.DOTALL
)
_TYPES: Final = {
    "Int8": "TINYINT",
    "Int16": "SMALLINT",
    "Int32": "INTEGER",
    "Int64": "BIGINT",
    "UInt8": "UTINYINT",
    "UInt16": "USMALLINT",
    "UInt32": "UINTEGER",
    "UInt64": "UBIGINT",
    "Float32": "REAL",
    "Float64": "DOUBLE",
    "Utf8": "VARCHAR",
    "LargeUtf8": "VARCHAR",
    "Utf8View": "VARCHAR",
    "Boolean": "BOOLEAN",
    "Date32": "DATE",
    "Decimal128": "DECIMAL",
    "Null": "NULL",
}
_CONSTANT: Final = re.compile(r"\b(?:U?Int\d+|Float\d+|Boolean)\((-?[\w.]+)\)|\b(?:Large)?Utf8(?:View)?\(\"(.*?)\"\)")
_TYPE: Final = re.compile(rf"\b(?:{'|'.join(_TYPES)})\b")
_TIMES: Final = re.compile(r"\b(Timestamp|Interval)\([^()]*\)|\b(Timestamp|Interval)\(\w+, \w+\(\"[^\"]*\"\)\)")

_KEYWORD_TEXT: Final = """
    SELECT DISTINCT FROM WHERE GROUP HAVING ORDER LIMIT OFFSET UNION INTERSECT EXCEPT JOIN LEFT RIGHT FULL INNER OUTER
    CROSS USING BETWEEN WITH VALUES PARTITION OVER CREATE TABLE VIEW REPLACE DESCRIBE EXPLAIN ANALYZE INSERT
    PRECEDING FOLLOWING UNBOUNDED EXISTS
"""
_TYPE_NAMES: Final = (
    *["INT", "INTEGER", "BIGINT", "SMALLINT", "TINYINT", "DOUBLE", "FLOAT", "REAL", "DECIMAL", "NUMERIC"],
    *["VARCHAR", "TEXT", "STRING", "CHAR", "BOOLEAN", "DATE", "TIMESTAMP", "TIMESTAMPTZ", "TIME", "INTERVAL", "BYTEA"],
)
_KEYWORDS: Final = tuple(_KEYWORD_TEXT.split())

#: translation of a message: the sentence, and the word of the text that it is about
_Saying = Callable[[re.Match[str], Collection[str]], tuple[str, str]]


def _no_column(found: re.Match[str], _tables: Collection[str]) -> tuple[str, str]:
    name = found[1].replace('"', "")
    fields = [field.replace('"', "") for field in re.findall(r"[^,\s]+", found[2] or "")]
    return _unknown("column", name, [_last(field) for field in fields]), found[1]


def _no_table(found: re.Match[str], tables: Collection[str]) -> tuple[str, str]:
    name = _last(found[1])
    if f".{name}" in _FILES:
        return f"no table {name}; a file stands in single quotes: FROM 'path.{name}'", ""
    return _unknown("table", name, tables), name


def _no_function(found: re.Match[str], _tables: Collection[str]) -> tuple[str, str]:
    if found[1] in WINDOW_NAMES:
        return f"{found[1]}() needs OVER (ORDER BY ...)", f"{found[1]}("
    if found[1] in REFUSED:
        return f"no function {found[1]}; {REFUSED[found[1]]}", f"{found[1]}("
    close = get_close_matches(found[1], FUNCTION_NAMES)
    return f"no function {found[1]}{_did_you_mean(close)}", f"{found[1]}("


def _no_types(found: re.Match[str], _tables: Collection[str]) -> tuple[str, str]:
    name = found[1].partition("(")[0]
    return f"no function has these types of arguments: {found[1]}{_instead(name)}", f"{name}("


def _no_count(found: re.Match[str], _tables: Collection[str]) -> tuple[str, str]:
    return f"{found[1]}() has {found[3]} arguments here and takes {found[2]}{_instead(found[1])}", f"{found[1]}("


def _instead(name: str) -> str:
    return f"; {REFUSED[name]}" if name in REFUSED else ""


def _no_value(found: re.Match[str], _tables: Collection[str]) -> tuple[str, str]:
    return f"'{found[1]}' is no {found[2]}", f"'{found[1]}'"


_SAYINGS: Final[tuple[tuple[re.Pattern[str], _Saying], ...]] = (
    (re.compile(r"No field named (.+?)\.(?: Did you mean .*?\?)?(?: Column names .*?\.)?(?: You can .*?\.)?"
                r"(?: Valid fields are (.*?))?\.?$"), _no_column),
    (re.compile(r"table '(.*?)' not found"), _no_table),
    (re.compile(r"Invalid function '(.*?)'"), _no_function),
    (re.compile(r"No function matches the given name and argument types '(.+?)'\."), _no_types),
    (re.compile(r"[Tt]he function '(\w+)' expected (.+?) argument.*? but received (\d+)"), _no_count),
    (re.compile(r"Cannot cast string '(.*?)' to value of (\w+) type"), _no_value),
    (re.compile(r"Error parsing timestamp from '(.*?)'"), lambda found, _: (
        f"'{found[1]}' is no TIMESTAMP", f"'{found[1]}'")),
    (re.compile(r"Ambiguous reference to unqualified field (\S+)"), lambda found, _: (
        f"column {found[1]} is in several tables; write which one, as in a.{_last(found[1])}", found[1])),
    (re.compile(r'column "(.+?)" must appear in the GROUP BY clause or must be part of an aggregate'),
     lambda found, _: (f"column {found[1]} is neither in GROUP BY nor in an aggregate", found[1])),
    (re.compile(r"HAVING clause references: (.*?) must appear in the GROUP BY"), lambda found, _: (
        f"HAVING looks at {found[1]}, which is neither in GROUP BY nor in an aggregate", "HAVING")),
    (re.compile(r"Aggregate functions are not allowed in the WHERE clause"), lambda _found, _: (
        "an aggregate in WHERE; write it in HAVING", "WHERE")),
    (re.compile(r'^Projections require unique expression names but the expression "(.+?)" at position'),
     lambda found, _: (f"two columns of a SELECT are the same, {found[1]}; give one of them a name with AS", "")),
    (re.compile(r"Cannot coerce arithmetic expression (.+?) (\S+) (.+?) to valid types"), lambda found, _: (
        f"{found[1]} {found[2]} {found[3]} is not defined; cast one side", found[2])),
    (re.compile(r"There isn't a common type to coerce (.+?) and (.+?) in (\w+) expression"), lambda found, _: (
        f"{found[1]} {found[3]} {found[2]} is not defined; cast one side", found[3])),
    (re.compile(r"Cannot infer common argument type for \w+ (?:boolean )?operation (.+?) (\S+) (\S+)$"),
     lambda found, _: (f"{found[1]} {found[2]} {found[3].rstrip('.')} is not defined; cast one side", found[2])),
    (re.compile(r"Too many columns! The subquery should only return one column: (.*)"), lambda found, _: (
        f"a query of one column is needed here, not of {found[1].count(',') + 1}; "
        "for several write EXISTS (SELECT ... WHERE a = x AND b = y)", "")),
    (re.compile(r"Correlated scalar subquery must be aggregated to return at most one row"), lambda _found, _: (
        "a query that stands for a value and depends on the row outside may have several rows; write max(...)", "")),
    (re.compile(r"[Uu]nsupported SQL type (\w+)"), lambda found, _: (
        f"no type {found[1]}{_did_you_mean(get_close_matches(found[1].upper(), _TYPE_NAMES))}", f"AS {found[1]}")),
    (re.compile(r"duplicate qualified field name (\w+)\.\w+"), lambda found, _: (
        f"{found[1]} stands twice in FROM; give each a name, as in {found[1]} AS a, {found[1]} AS b", found[1])),
    (re.compile(r"[Cc]annot create filter with non-boolean predicate '(.*?)' returning (.+?)\.?$"), lambda found, _: (
        f"WHERE takes a condition, {found[1]} is {found[2]}; write {found[1]} = ... or IS NOT NULL", "WHERE")),
    (re.compile(r"[Ii]nvalid input syntax for type interval: \"?(.*?)\"?$"), lambda found, _: (
        f"'{found[1]}' is no INTERVAL; write INTERVAL '1 day'", f"'{found[1]}'")),
    (re.compile(r"^[Aa]ggregate function calls cannot be nested"), lambda _found, _: (
        "an aggregate of an aggregate; write the inner one in a query of FROM", "")),
    (re.compile(r"[Ss]ubstring without for/from is not valid"), lambda _found, _: (
        "substring needs a start, as in substring(s, 1, 2)", "substring(")),
    (re.compile(r"^(\w+) queries have different number of columns"), lambda found, _: (
        f"both sides of {found[1]} need as many columns", found[1])),
    (re.compile(r"[Nn]umber of columns .*?(UNION|INTERSECT|EXCEPT)"), lambda found, _: (
        f"both sides of {found[1]} need as many columns", found[1])),
    (re.compile(r"^SHOW \[VARIABLE\]"), lambda _found, _: ("SHOW is followed by TABLES", "SHOW")),
    (re.compile(r"only supports a single SQL statement"), lambda _found, _: ("more than one statement", ";")),
    (re.compile(r"LIMIT must be >= 0, '(.*?)' was provided"), lambda found, _: (
        f"LIMIT {found[1]} is negative", "LIMIT")),
)  # fmt: skip


def said(error: Exception, text: str, tables: Collection[str]) -> str:
    """Return the message about a text, with its place where it is known."""
    words = _without_causes(str(error).strip())
    parser = _PARSER.search(words)
    if parser is not None:
        return _of_parser(parser, text)
    words = " ".join(words.replace("datafusion.public.", "").split())
    for form, sentence, word in FORMS:
        if form.search(words):
            return f"{place_of(word, text)}{sentence}"
    for pattern, saying in _SAYINGS:
        found = pattern.search(words)
        if found is not None:
            sentence, word = saying(found, tables)
            in_quotes = saying is _no_column and f'"{found[1].replace(chr(34), "")}"' in text
            hint = f"; a text stands in single quotes: '{found[1].replace(chr(34), '')}'" if in_quotes else ""
            place = _place_of_table(word, text) if saying is _no_table else place_of(word, text)
            name = "" if place or not word.endswith("(") else _written_as(word.removesuffix("("), text)
            if name:
                place, sentence = place_of(f"{name}(", text), f"{name}(): {sentence}"
            return f"{place}{in_sql(sentence)}{hint}"
    words = in_sql(re.split(r"\.? This issue was likely caused", words)[0]).rstrip(".")
    return words if words[1:2].isupper() else f"{words[:1].lower()}{words[1:]}"


def _written_as(planned: str, text: str) -> str:
    """Return the function that a text calls and the planner knows under another name; "" where there is none."""
    names = [name for name, other in RENAMED.items() if other == planned]
    names += [name for (name, _), template in CALLS.items() if re.search(rf"\b{planned}\(", template)]
    names.append(planned.replace("array_", "list_"))
    return next((name for name in names if place_of(f"{name}(", text)), "")


def unknown_column(error: Exception) -> str | None:
    """Return the name of the column that a query names and no table has; None for another error."""
    words = " ".join(str(error).split())
    found = next(
        (found for pattern, saying in _SAYINGS if (found := pattern.search(words)) and saying is _no_column), None
    )
    return None if found is None or "." in found[1] else found[1].replace('"', "")


def is_of_parser(error: Exception) -> bool:
    """Return whether a text was not understood, whatever its names."""
    return _PARSER.search(str(error)) is not None


def place_of(word: str, text: str) -> str:
    """Return "line 1, column 8: " of a name, "name(", 'text' or operator in a text; "" where it is not found."""
    found = tokens(text)
    place = next(_places(found, word), None) if word else None
    if place is None:
        return ""
    return _at("".join(token.text for token in found[:place]))


def _place_of_table(name: str, text: str) -> str:
    """Return the place of a name behind FROM, JOIN or a comma; else where it is first."""
    found = tokens(text)
    places = list(_places(found, name)) if name else []
    behind = (at for at in places if words_from(found, before(found, at), 1) in (["FROM"], ["JOIN"], [","]))
    place = next(behind, places[0] if places else None)
    return "" if place is None else _at("".join(token.text for token in found[:place]))


def with_place(sentence: str, text: str) -> str:
    """Return a sentence with the place of the one word that it shares with the text; else the sentence."""
    if _PLACE.search(sentence):
        return sentence
    what = sentence.removeprefix("sql: ").partition(";")[0].partition("(write")[0]
    written = [token.word for token in tokens(text)]
    named = [
        word
        for word in re.findall(r"\b[A-Z][A-Z_]+\b|\b\w+(?=\(\))|\b[a-z]+_[a-z_]+\b", what)
        if written.count(word.upper()) == 1
    ]
    if not named:
        return sentence
    before_it = text_of(tokens(text)[: written.index(named[0].upper())])
    return f"sql: {_at(before_it)}{sentence.removeprefix('sql: ')}"


def _places(found: Sequence[Token], word: str) -> Iterator[int]:
    is_type = word.startswith("AS ")
    wanted = word.removeprefix("AS ").removesuffix("(").replace('"', "").upper()
    for place, token in enumerate(found):
        if token.word.replace('"', "").upper() != wanted:
            continue
        following = after(found, place)
        is_call = following < len(found) and found[following].word == "("
        is_alias = words_from(found, before(found, place), 1) == ["AS"] and not is_type
        if not wanted[:1].isalpha() or (is_call == word.endswith("(") and not is_alias):
            yield place
    if "." in wanted:
        yield from _places(found, wanted.rpartition(".")[2])


def _of_parser(found: re.Match[str], text: str) -> str:
    words = found[1].replace("\\'", "'").replace('\\"', '"').rstrip(".")
    words = words if words[1:2].isupper() else f"{words[:1].lower()}{words[1:]}"
    place = f"line {found[2]}, column {found[3]}: " if found[2] else _at(text.rstrip())
    return f"{place}{words.replace('found: EOF', 'found: the end')}{_keyword_near(text, found[2], found[3])}"


def _keyword_near(text: str, line: str | None, column: str | None) -> str:
    """Return the word of SQL that was meant where the parser stopped, or just before: "SELECT k FORM t"."""
    if line is None or column is None:
        return ""
    end = sum(len(one) + 1 for one in text.split("\n")[: int(line) - 1]) + int(column) - 1
    stopped = re.match(r"\w*", text[end:])
    if stopped and stopped[0].upper() in ("GROUP", "ORDER", "PARTITION"):
        return f"; write {stopped[0].upper()} BY"
    for word in (stopped[0] if stopped else "", *re.findall(r"(\w+)\W*$", text[:end])):
        close = get_close_matches(word.upper(), _KEYWORDS, n=1, cutoff=0.7)
        if close and close[0] != word.upper():
            return f"; did you mean {close[0]} for {word}?"
    return ""


def _without_causes(words: str) -> str:
    """Return the last message of a chain of causes."""
    found = _CAUSES.match(words)
    while found:
        words = words[found.end() :]
        found = _CAUSES.match(words)
    return words


def _at(before_it: str) -> str:
    return f"line {before_it.count(chr(10)) + 1}, column {len(before_it) - before_it.rfind(chr(10))}: "


def in_sql(sentence: str) -> str:
    """Return a sentence with types and constants as SQL writes them."""
    plain = _CONSTANT.sub(lambda found: found[1] or f"'{found[2]}'", sentence)
    plain = _TIMES.sub(lambda found: (found[1] or found[2]).upper(), plain)
    return _TYPE.sub(lambda found: _TYPES[found[0]], plain)


def _unknown(kind: str, name: str, known: Collection[str]) -> str:
    names = list(dict.fromkeys(known))
    quoted = next((each for each in names if each != name and each.lower() == _last(name)), "")
    if quoted:
        return f'no {kind} {name}; quote it, "{quoted}": names without quotes are read in lower case'
    close = get_close_matches(_last(name).lower(), names, cutoff=0.5)
    shown = names[:_SHOWN_NAMES]
    more = f" and {len(names) - len(shown)} more" if len(names) > len(shown) else ""
    there = f" (there are {', '.join(shown)}{more})" if names else ""
    return f"no {kind} {name}{_did_you_mean(close)}{there}"


def _did_you_mean(close: Sequence[str]) -> str:
    return f"; did you mean {' or '.join(close[:2])}?" if close else ""


def _last(name: str) -> str:
    return name.rpartition(".")[2]
