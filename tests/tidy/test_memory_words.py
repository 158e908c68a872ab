"""One word for each thing of memory: those of the glossary, and none beside them in comments, docstrings and names."""

import re
import tokenize

import pytest

from tests.tidy.imports import ROOT, source_files
from tests.tidy.prose import prose_of, tokens_of

GLOSSARY = ROOT / "docs" / "pages" / "guide" / "memory.md"
WORDS_MAX = 8
#: what a reservation, a budget, a pool or pages that are kept free are not called
RIVALS = (
    r"lent|lends?|lending|lenders?|unlent|grants?|granted|granting|wish|wishes|wished|wishing|quotas?|allotments?"
    r"|allowances?|entitlements?|rations?|withholds?|withheld|withholding|demands?|managed"
)
#: a part of memory, which is a budget, a pool or a slot's pages; shares of rows, keys and time are none
SHARES = (
    r"shares? of (?:[\w']+ ){0,3}(?:memory|pages?|slots?|budget|pool|process)|"
    r"(?:memory|network|worker|workers'|operator's|slot's|Arrow's|process's) shares?"
)
PROSE = re.compile(rf"\b(?:(?:{RIVALS})(?!\w)|{SHARES})\b", re.IGNORECASE)
#: places where such a word is another one: keys of options, sources, idioms, and what elections and credits are about
OTHERS = re.compile(
    r"\.managed\b|Source: [^;]*|on demand|for granted|grants credit"
    r"|leader services ─ grant|election ─ grants epoch|election granted"
)
NAME = re.compile(rf"(?:^|_)(?:{RIVALS.removesuffix('|managed')})(?:_|$)", re.IGNORECASE)
CAMEL = re.compile(r"(?:Lent|Lender|Grant|Wish|Quota|Demand)(?:[A-Z]|s?$)")
#: Words of texts that are worth a closer look: to tell comments from code takes a hundred times as long as this search.
SUSPECT = re.compile(
    rf"(?<![a-z])(?:{RIVALS}|shares?)(?![a-z])|(?-i:(?:Lent|Lender|Grant|Wish|Quota|Demand)(?:[A-Z]|s?(?!\w)))",
    re.IGNORECASE,
)
#: of elections and of credits between processes; ``managed_...`` are names of REST, options and results
OTHER_NAMES = {"grant_leadership", "is_granted", "_is_granted", "CREDIT_NOT_GRANTED"}


def rivals_in(text):
    if SUSPECT.search(text) is None:
        return
    tokens = tokens_of(text)
    for line, prose in prose_of(tokens):
        yield from ((line, match[0]) for match in PROSE.finditer(OTHERS.sub("", prose)))
    for token in tokens:
        is_rival = token.type == tokenize.NAME and (NAME.search(token.string) or CAMEL.search(token.string))
        if is_rival and token.string not in OTHER_NAMES:
            yield token.start[0], token.string


def glossary():
    section = GLOSSARY.read_text(encoding="utf-8").partition("## Words\n")[2].partition("\n## ")[0]
    return [word for word in re.findall(r"(?m)^\| ([\w ]+?) \|", section) if word != "word"]


def test_the_glossary_has_few_words():
    words = glossary()
    assert len(words) == len(set(words)) <= WORDS_MAX
    assert set(words) == {"process size", "budget", "reservation", "page", "slot", "pool", "spill", "account"}


def test_memory_has_no_other_words():
    sources = source_files()
    assert len(sources) > 500
    found = [
        f"{path.relative_to(ROOT)}:{line}: {word}"
        for path in sources
        if path.is_relative_to(ROOT / "engine")
        for line, word in rivals_in(path.read_text(encoding="utf-8"))
    ]
    assert found == []


@pytest.mark.parametrize("page", sorted((ROOT / "docs" / "pages").rglob("*.md")), ids=lambda page: page.stem)
def test_pages_for_users_have_no_other_words(page):
    text = re.sub(r"```.*?```|`[^`]*`|[Mm]anaged memory", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert [match[0] for match in PROSE.finditer(OTHERS.sub("", text))] == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("def f():\n    '''Take the share of its pages that a slot has.'''\n", ["share of its pages"]),
        ("x = 1  # what the manager lent\n", ["lent"]),
        ("# the worker\n# shares of this process\n", ["worker shares"]),
        ("class LargeGrant:\n    def pages_wished(self): ...\n", ["LargeGrant", "pages_wished"]),
        ("# read on demand, its share of rows, `taskmanager.memory.managed.size`\n", []),
        ("x = 'a grant'\nsilent = calendar = is_equivalent = 0\n", []),
    ],
)
def test_the_rule_sees_what_breaks_it(text, words):
    assert [word for _, word in rivals_in(text)] == words
