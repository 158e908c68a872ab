"""The words of a statement, one after the other: what begins it, names, paths, and what is in parentheses.

    words = Words.of("COPY (SELECT 1) TO 'out.csv' (HEADER false)")      stands behind COPY
    words.parentheses()         the words SELECT 1
    words.take("TO")            True: the word is there, and is passed
    words.string()              "out.csv"

Words are what sqlglot's tokenizer finds in the dialect of ours; a word in quotes is a name, and none that is taken.

Held by: tests/sql/test_statements.py
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Final

from sqlglot.tokens import Token, TokenType  # type: ignore[attr-defined]

from engine.dialects.parser import Drey, shown_place

_DEPTHS: Final = {TokenType.L_PAREN: 1, TokenType.R_PAREN: -1}
#: first words of a query
_QUERIES: Final = ("(", "SELECT", "FROM", "WITH", "VALUES", "PIVOT", "UNPIVOT", "TABLE")
_QUOTED: Final = (TokenType.STRING, TokenType.IDENTIFIER)


class _Statements(Drey):
    """The dialect, in which no word begins a text of its own."""

    class Tokenizer(Drey.Tokenizer):  # type: ignore[misc]
        """Cuts the words behind EXPLAIN, too."""

        COMMANDS: ClassVar[set[Any]] = set()


_DIALECT: Final = _Statements()


def placed(text: str, begin: int, end: int) -> str:
    """Return a part of a text behind as many lines and blanks as there are before it."""
    line = text.rfind("\n", 0, begin) + 1
    return "\n" * text.count("\n", 0, begin) + " " * (begin - line) + text[begin:end]


class Words:
    """The words of a statement; those before a place are passed."""

    def __init__(self, text: str, tokens: Sequence[Token], begin: int) -> None:
        self._text = text
        self._tokens = tokens
        self._at = 0
        #: place behind what was passed
        self._begin = begin

    @classmethod
    def of(cls, text: str) -> Words:
        """Return the words of a statement behind the first one. Raises: TokenError where a string has no end."""
        first, *tokens = _DIALECT.tokenize(text)
        while tokens and tokens[-1].token_type is TokenType.SEMICOLON:
            tokens.pop()
        return cls(text, tokens, first.end + 1)

    @property
    def is_end(self) -> bool:
        """Whether no word is left."""
        return self._at == len(self._tokens)

    @property
    def is_last(self) -> bool:
        """Whether one word is left."""
        return self._at == len(self._tokens) - 1

    @property
    def place(self) -> str:
        """The line and column of the next word, or of the last one, as errors have them."""
        at = min(self._at, len(self._tokens) - 1)
        return shown_place(self._text, self._tokens[at].start if self._tokens else self._begin)

    def begins(self, *words: str) -> bool:
        """Return whether words come next."""
        found = self._tokens[self._at : self._at + len(words)]
        return [one.text.upper() for one in found if one.token_type not in _QUOTED] == list(words)

    def take(self, *words: str) -> bool:
        """Pass words, if they come next."""
        has_words = self.begins(*words)
        if has_words:
            self._pass(len(words))
        return has_words

    @property
    def is_string(self) -> bool:
        """Whether the next word is a string."""
        return self.written().startswith("'")

    @property
    def is_query(self) -> bool:
        """Whether a query begins here."""
        return self.written().upper() in _QUERIES

    def written(self) -> str:
        """Return the next word as it is written."""
        return self._slice(self._tokens[self._at : self._at + 1])

    def name(self) -> str | None:
        """Pass a name and return it, in lower case unless it is quoted; None for what is none."""
        written = self.written()
        is_quoted = written.startswith('"')
        if not is_quoted and not written.replace("_", "a").isalnum():
            return None
        (token,) = self._pass(1)
        return str(token.text) if is_quoted else written.lower()

    def dotted(self) -> str:
        """Pass words that dots join and return them, "" for others."""
        found = self.rest()
        if not found.replace(".", "").replace("_", "").isalnum():
            return ""
        self._pass(len(self._tokens) - self._at)
        return found

    def string(self) -> str | None:
        """Pass a string and return what it says; None for what is none."""
        return str(self._pass(1)[0].text) if self.is_string else None

    def parentheses(self) -> Words | None:
        """Pass what stands in parentheses and return its words; None where there are none."""
        depth = 0
        for place, token in enumerate(self._tokens[self._at :]):
            depth += _DEPTHS.get(token.token_type, 0)
            if depth == 0:
                opening, *inside = self._pass(place + 1) if place else [token]
                return Words(self._text, inside[:-1], opening.end + 1) if place else None
        return None

    def options(self) -> Words | None:
        """Pass options in parentheses and return their words; None for parentheses around a query."""
        behind = self._tokens[self._at + 1 : self._at + 2]
        return self.parentheses() if self.begins("(") and behind and behind[0].text.upper() not in _QUERIES else None

    def items(self) -> Iterator[Words]:
        """Yield the words between commas."""
        depth, item = 0, list[Token]()
        for token in self._tokens:
            depth += _DEPTHS.get(token.token_type, 0)
            if token.token_type is TokenType.COMMA and not depth:
                yield Words(self._text, item, token.start)
                item = []
            else:
                item.append(token)
        if item:
            yield Words(self._text, item, item[0].start)

    def rest(self) -> str:
        """Return the text of the words that are left."""
        return self._slice(self._tokens[self._at :])

    def placed_rest(self) -> str:
        """Return the text that is left, behind as many lines and blanks as there are before it."""
        begin = self._begin + len(self._text[self._begin :]) - len(self._text[self._begin :].lstrip())
        return placed(self._text, begin, self._tokens[-1].end + 1)

    def _pass(self, count: int) -> Sequence[Token]:
        found = self._tokens[self._at : self._at + count]
        self._at += count
        self._begin = found[-1].end + 1
        return found

    def _slice(self, tokens: Sequence[Token]) -> str:
        return self._text[tokens[0].start : tokens[-1].end + 1] if tokens else ""
