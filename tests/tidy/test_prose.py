"""Comments, docstrings and pages are plain technical English: each stands alone, in the terms of the field.

A comment of a field (``#:``) begins with its noun, a docstring with a noun or a verb; "who" and "nobody" are people;
words that only this project would use for a thing have a term of the field beside them here. Metaphors are those of
``metaphors.py``.
"""

import re
from pathlib import Path

import pytest

from tests.tidy.imports import ROOT, source_files
from tests.tidy.metaphors import ALLOWED, PICTURED
from tests.tidy.prose import Remark, prose_of, remarks_of, said_in, tokens_of

PAGES = sorted((ROOT / "docs" / "pages").rglob("*.md"))
_QUESTIONS = "what where how which whose why who whom when whether"
_PRONOUNS = "it its they them their these those that this he such nobody somebody anybody whoever whatever nothing"
_PREPOSITIONS = (
    "of by for in as so from with behind before between without after since on to at into through across along beside "
    "besides under above within during against because if unless while than until about over below once"
)
#: verbs and participles that begin a phrase whose subject would be the name below
_VERBS = (
    "is has was are returns return makes takes registers grows begins writes adds hears holds gives says asks "
    "lets keeps knows ends goes comes stands lies tells shows reads finds drops set given written "
    "called sent applied looked read waited"
)
#: words with which no comment of a field begins: its noun is missing
COMMENT_OPENERS = frozenset(
    f"{_QUESTIONS} {_PRONOUNS} {_PREPOSITIONS} {_VERBS} ever also and or not there here".split()
)
#: words with which no docstring begins
DOCSTRING_OPENERS = frozenset(f"{_QUESTIONS} {_PRONOUNS} {_PREPOSITIONS} there given is has are".split()) - {"whether"}
#: words that a docstring returns in place of a noun ("whether" is the idiom of the field for booleans)
_RETURNED = frozenset(f"{_QUESTIONS} it its they them their those that {_PREPOSITIONS}".split()) - {"whether"}
_RETURNS = frozenset({"return", "yield", "give"})
_ASIDE = frozenset({"take", "tell", "say", "ask", "note", "add", "put", "keep"})
#: words that mean people
PEOPLE = re.compile(r"\b(?:nobody|somebody|anybody|everybody|whoever|whom|who)\b", re.IGNORECASE)
#: places where they may stand: behind a noun for people
OF_PEOPLE = re.compile(r"\b(?:users?|people|person|those|anyone|authors?|readers?) (?:\w+ )?who\b", re.IGNORECASE)
#: words of a dialect, and terms of the field in their place
DIALECT = {
    r"sieves?|sifted|sift": "router, filter",
    r"seats?": "slot",
    r"boards?": "registry",
    r"doors?": "interface",
    r"manners?": "mode, settings",
    r"hand(?:s|ed|ing)? (?:\w+ ){0,4}?(?:over|on|out|back)|hands|handed|handing|at hand": "pass, send, submit, current",
    r"kin|in vain|be (?:it|they)": "similar, cannot succeed, whether",
    r"strangers?": "unproved peer, untrusted data",
}
#: pictures on pages that are no terms of the field, as spill, skew or leader are: the plain word in their place
PICTURES = {
    r"anatomy": "architecture",
    r"beats?": "overrides",
    r"dealt": "assigned in turn",
    r"drowns?|drowned": "receives most of the rows",
    r"mends?|mended|mending": "recovers, repairs",
    r"roads?": "path, protocol",
    r"feeds?|starves?|swallows?": "sends, waits, drops",
    r"sieves?": "filter",
    r"travels?|travelled|travelling": "is sent",
    r"news": "message",
}
_PICTURES = re.compile(rf"\b(?:{'|'.join(PICTURES)})\b", re.IGNORECASE)
_METAPHORS = re.compile(rf"\b({'|'.join(sorted(PICTURED))})(?:s|d|ed|ing)?\b", re.IGNORECASE)
_DIALECT = re.compile(rf"\b(?:{'|'.join(DIALECT)})\b", re.IGNORECASE)
#: idioms of the field in which such a word stands
IDIOMS = re.compile(r"change data feed|by hand|hand-written|left-hand|right-hand", re.IGNORECASE)


def fault_of(remark: Remark) -> str:
    """Return the fault of a comment of a field or of a docstring, "" for none."""
    words = remark.text.replace("``", "").split()
    first = words[0].strip(".,;:()`") if words else ""
    if not first:
        return "it is empty"
    if first.isupper() and len(first) > 1:
        return ""  # words of SQL
    first, second = first.lower(), words[1].strip(".,;:()`").lower() if len(words) > 1 else ""
    if remark.kind == "comment":
        if not remark.code:
            return "no field follows"
        return f"it begins with {first!r}" if first in COMMENT_OPENERS else ""
    if first in DOCSTRING_OPENERS:
        return f"it begins with {first!r}"
    if remark.kind == "docstring" and (
        (first in _RETURNS and (second in _RETURNED or " ".join(words[1:3]).lower() == "the same"))
        or (first in _ASIDE and second in ("what", "those"))
    ):
        return f"it begins with '{first} {second}'"
    return ""


def words_of(text: str) -> list[str]:
    """Return the words of a text that are said of things and mean people, and those of a dialect."""
    text = re.sub(r"``[^`]*``|`[^`]*`", "", text)
    people = PEOPLE.findall(OF_PEOPLE.sub("", text))
    return people + _DIALECT.findall(IDIOMS.sub("", text))


def metaphors_of(text: str) -> list[str]:
    """Return the words of a text that paint pictures, without their endings."""
    return [word.lower() for word in _METAPHORS.findall(re.sub(r"``[^`]*``|`[^`]*`", "", text))]


def faults(path: Path) -> list[str]:
    """Return the faults of the language of a source, each with its line."""
    text = path.read_text(encoding="utf-8")
    tokens = list(said_in(text))
    remarks = remarks_of(text, tokens)
    found = [f"{each.line}: {fault}: {each.text[:60]}" for each in remarks if (fault := fault_of(each))]
    for line, said in prose_of(tokens):
        found += [f"{line}: the word {word!r}" for word in words_of(said)]
    return [f"{path.relative_to(ROOT)}:{fault}" if path.is_relative_to(ROOT) else fault for fault in found]


def test_comments_and_docstrings_stand_alone_in_terms_of_the_field():
    sources = source_files()
    assert len(sources) > 500
    assert [fault for path in sources for fault in faults(path)] == []


def test_metaphors_are_terms_of_the_field():
    """Those of comments and pages are on the list, and the list has no others."""
    texts = {path: page_text(path) for path in PAGES}
    for path in source_files():
        said = prose_of(list(said_in(path.read_text(encoding="utf-8"))))
        texts[path] = "\n".join(text for _, text in said)
    found = {path: set(metaphors_of(text)) for path, text in texts.items()}
    foreign = {str(path.relative_to(ROOT)): words - ALLOWED.keys() for path, words in found.items()}
    assert {path: words for path, words in foreign.items() if words} == {}
    assert ALLOWED.keys() - set().union(*found.values()) == set(), "no text uses them"
    assert metaphors_of("its death starves nobody, `kills` it") == ["death", "starve"]


def test_what_is_said_in_a_source_is_what_all_of_its_tokens_say():
    continued = 'x = (\n    "a"\n)\ny = \\\n    "b"\n"c" "d"\nz = b\'#\'  # e "f"\n'
    for text in (continued, *(path.read_text(encoding="utf-8") for path in source_files()[::50])):
        found, tokens = list(said_in(text)), tokens_of(text)
        assert prose_of(found) == prose_of(tokens)
        assert list(remarks_of(text, found)) == list(remarks_of(text, tokens))


def page_text(page: Path) -> str:
    """Return the text of a page without code, drawings and the targets of links."""
    text = page.read_text(encoding="utf-8")
    return re.sub(r"(?s)```.*?```|`[^`]*`|\]\([^)]*\)|<svg.*?</svg>", "", text)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_pages_use_the_terms_of_the_field(page):
    text = page_text(page)
    assert words_of(text) == []
    assert _PICTURES.findall(text) == []


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("#: of the last one\nx = 1\n", "it begins with 'of'"),
        ("#: whether it ends\nx = 1\n", "it begins with 'whether'"),
        ("#: name of the last one\n\nx = 1\n", "no field follows"),
        ("#: name of the last one\nx = 1\n", ""),
        ("x = 1  #: returns the name\n", "it begins with 'returns'"),
        ('def f():\n    """Return what a row has."""\n', "it begins with 'return what'"),
        ('def f():\n    """Return the same rows."""\n', "it begins with 'return the'"),
        ('def f():\n    """What a row has."""\n', "it begins with 'what'"),
        ('def f():\n    """Whether a row has one."""\n', ""),
        ('def f():\n    """Return the row that has one."""\n', ""),
        ('"""IN and NOT IN, as joins."""\n', ""),
    ],
)
def test_the_rule_sees_how_a_remark_begins(text, fault):
    (remark,) = remarks_of(text, tokens_of(text))
    assert fault_of(remark) == fault


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("rows that nobody reads, by whoever asks", ["nobody", "whoever"]),
        ("users who wait, people who look", []),
        ("a seat is handed over at hand", ["seat", "handed over", "at hand"]),
        ("written by hand, see ``RowSieve`` and the left-hand side", []),
    ],
)
def test_the_rule_sees_words_of_a_dialect(text, words):
    assert words_of(text) == words
