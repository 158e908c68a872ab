"""Directives of dates and times, as Python has them on Linux: what a format of strftime or strptime is made of.

    writing_steps("%-d.%m. at %R")   day without zeros, ".", month, ". at ", hour, ":", minute     for ``moment_writer``
    reading_steps("%d %b %Y")        day, space, month's name, space, year                         for ``moment_reader``

    % [flags] [width] [E or O] directive
        flags    - no padding, _ spaces, 0 zeros, ^ upper case, # upper case, of %p lower case
        E, O     the locale's other form, which English has not: they change nothing

What is no directive is an error when the plan is made. Reading takes a directive once, with flags that change nothing,
and only what says a date or a time; what Python's strptime refuses as a whole, such as ``%G`` without ``%V``, is
refused here. Names are English, whatever the locale.

Source: Python's datetime and _strptime, glibc's strftime in the locale C.

Held by: tests/expressions/test_time_directives.py
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from typing import Final, NamedTuple

from engine.expressions.binding import NoMatchError


class Directive(NamedTuple):
    """A directive: what it stands for, and its part of a moment or the format that it is short for."""

    meaning: str
    part: str = ""
    #: smallest number of digits
    digits: int = 0
    pad: str = "0"
    is_read: bool = True
    short_for: str = ""


class Step(NamedTuple):
    """One piece of a format: least bytes and what fills them, the case of a name, the text of a literal."""

    part: str
    width: int = 0
    pad: str = ""
    case: str = ""
    text: str = ""


DIRECTIVES: Final = {
    "Y": Directive("the year, four digits", "year", 4),
    "y": Directive("the year of the century; 00 to 68 are read as 2000 to 2068", "short_year", 2),
    "C": Directive("the century", "century", 2, is_read=False),
    "m": Directive("the month, 01 to 12", "month", 2),
    "B": Directive("the month's name", "month_name"),
    "b": Directive("the month's name, three letters", "month_letters"),
    "h": Directive("the same", "month_letters"),
    "d": Directive("the day of the month, 01 to 31", "day", 2),
    "e": Directive("the same with a space in place of the zero", "day", 2, " "),
    "j": Directive("the day of the year, 001 to 366", "year_day", 3),
    "A": Directive("the day of the week", "day_name"),
    "a": Directive("the day of the week, three letters", "day_letters"),
    "u": Directive("the day of the week, 1 (Monday) to 7", "iso_weekday", 1),
    "w": Directive("the day of the week, 0 (Sunday) to 6", "weekday", 1),
    "U": Directive("the week of the year, from its first Sunday on", "sunday_week", 2),
    "W": Directive("the week of the year, from its first Monday on", "monday_week", 2),
    "V": Directive("the ISO week", "iso_week", 2),
    "G": Directive("the year of the ISO week", "iso_year", 4),
    "g": Directive("the year of the ISO week, two digits", "short_iso_year", 2, is_read=False),
    "H": Directive("the hour, 00 to 23", "hour", 2),
    "k": Directive("the same with a space in place of the zero", "hour", 2, " "),
    "I": Directive("the hour, 01 to 12", "half_hour", 2),
    "l": Directive("the same with a space in place of the zero", "half_hour", 2, " "),
    "p": Directive("AM or PM", "half"),
    "P": Directive("am or pm", "half"),
    "M": Directive("the minute", "minute", 2),
    "S": Directive("the second", "second", 2),
    "f": Directive("microseconds, six digits; one to six are read", "fraction", 6),
    "z": Directive("the offset from UTC, `+0100`; `+01:00` and `Z` are read", "offset"),
    ":z": Directive("the offset from UTC, `+01:00`; as `%z` reads", "colon_offset"),
    "Z": Directive("the name of the zone; UTC and GMT are read", "zone"),
    "s": Directive("seconds since 1970", "epoch", 1, is_read=False),
    "c": Directive("date and time", short_for="%a %b %e %H:%M:%S %Y"),
    "D": Directive("the date of the USA", short_for="%m/%d/%y"),
    "x": Directive("the same", short_for="%m/%d/%y"),
    "F": Directive("the date", short_for="%Y-%m-%d"),
    "R": Directive("hour and minute", short_for="%H:%M"),
    "T": Directive("the time", short_for="%H:%M:%S"),
    "X": Directive("the same", short_for="%H:%M:%S"),
    "r": Directive("the time of twelve hours", short_for="%I:%M:%S %p"),
    "n": Directive("a line break", short_for="\n"),
    "t": Directive("a tab", short_for="\t"),
    "%": Directive("a percent sign"),
}

_SPECIFIED: Final = re.compile(r"%([-_0^#]*)([0-9]{0,3})([EO]?)(:z|.?)", re.DOTALL)
_LATIN_FORMS: Final = {"E": "cCxXyY", "O": "deHImMSuUVwWyBbh"}
#: directives without width and flags in Python, which formats them itself
_PLAIN: Final = ("f", "z", ":z", "Z", "%")
#: directives of other libraries whose letters are none here, with the directive that has their meaning
_ELSEWHERE: Final = {"L": "%f", "N": "%f", "i": "%M", "J": "%j", "v": "%e-%b-%Y", "K": "%H"}
_SHOWN_MAX: Final = 60
_WEEKDAYS: Final = ("day_name", "day_letters", "iso_weekday", "weekday")


def listed_directives(*, is_read: bool) -> str:
    """Return the directives that are written, or those that are read, in the order of the table."""
    return " ".join(f"%{name}" for name, each in DIRECTIVES.items() if each.is_read or not is_read)


def _shown(written: str) -> str:
    return repr(written if len(written) <= _SHOWN_MAX else f"{written[:_SHOWN_MAX]}...")


def _refused(found: re.Match[str], written: str, function: str, reason: str = "") -> NoMatchError:
    """Return the error of what is no directive."""
    shown, letter = found[0], found[4]
    if not letter:
        return NoMatchError(f"the format {_shown(written)} ends within {shown!r}; %% is a percent sign")
    near = _ELSEWHERE.get(letter) or (f"%{letter.swapcase()}" if letter.swapcase() in DIRECTIVES else "")
    unknown = f"which is no directive of {function}" + (f" (did you mean {near}?)" if near else "")
    known = listed_directives(is_read=function == "strptime")
    return NoMatchError(f"the format {_shown(written)} has {shown}, {reason or unknown}; there are {known}")


def _pieces(written: str) -> Iterator[str | re.Match[str]]:
    """Yield the texts of a format, and its directives between them."""
    begin = 0
    for found in _SPECIFIED.finditer(written):
        if found.start() > begin:
            yield written[begin : found.start()]
        yield found
        begin = found.end()
    if begin < len(written):
        yield written[begin:]


def writing_steps(written: str) -> list[Step]:
    """Return the steps that write a moment; NoMatchError names what is no directive."""
    steps: list[Step] = []
    for piece in _pieces(written):
        if isinstance(piece, str):
            steps.append(Step("literal", text=piece))
        else:
            steps += _written(piece, written)
    return _joined(steps)


def _written(found: re.Match[str], written: str) -> list[Step]:
    flags, width, form, letter = found.groups()
    known = DIRECTIVES.get(letter)
    if known is None or (form and letter not in _LATIN_FORMS[form]):
        raise _refused(found, written, "strftime")
    is_fixed = letter in _PLAIN or known.short_for
    if is_fixed and (width or set(flags) - {"^" if known.short_for else ""}):
        raise _refused(found, written, "strftime", "which takes no flag and no width")
    if letter == "%":
        return [Step("literal", text="%")]
    if known.short_for:
        steps = writing_steps(known.short_for)
        return [step._replace(case="^") for step in steps] if "^" in flags else steps
    pad = next((flag for flag in reversed(flags) if flag in "-_0"), "")
    case = "P" if letter == "P" else _case(flags, known.part)
    if not known.digits:
        return [Step(known.part, int(width or 0), "0" if pad == "0" else " ", case)]
    if pad == "-":
        return [Step(known.part, int(width or 1), " ", case)]
    filled = {"_": " ", "0": "0", "": known.pad}[pad]
    return [Step(known.part, max(known.digits, int(width or 0)), filled, case)]


def _case(flags: str, part: str) -> str:
    """Return the case of a name: ``^`` upper, ``P`` lower, or as it is."""
    if "#" in flags:
        return "P" if part == "half" else "^"
    return "^" if "^" in flags else ""


def _joined(steps: Sequence[Step]) -> list[Step]:
    """Return steps with neighbouring literals as one."""
    joined: list[Step] = []
    for step in steps:
        if joined and step.part == joined[-1].part == "literal":
            joined[-1] = joined[-1]._replace(text=joined[-1].text + step.text)
        else:
            joined.append(step)
    return joined


def reading_steps(written: str) -> list[Step]:
    """Return the steps that read a text; NoMatchError names what is no directive, or what says no moment."""
    steps = _read_pieces(written)
    _check_parts([step.part for step in steps if step.part not in ("literal", "space")], written)
    return steps


def _literals(text: str) -> Iterator[Step]:
    """Yield the steps of a text: where it has spaces, any spaces are read."""
    for part in re.split(r"(\s+)", text):
        if part:
            yield Step("space") if part.isspace() else Step("literal", text=part)


def _read(found: re.Match[str], written: str) -> list[Step]:
    flags, width, form, letter = found.groups()
    known = DIRECTIVES.get(letter)
    if known is None:
        raise _refused(found, written, "strptime")
    if not known.is_read:
        raise _refused(found, written, "strptime", "which is written and not read")
    if width or form or set(flags) - set("-_0" if known.digits and letter not in _PLAIN else ""):
        raise _refused(found, written, "strptime", f"where only %{letter} is read")
    if known.short_for:
        return _read_pieces(known.short_for)
    if letter == "%":
        return [Step("literal", text="%")]
    return [Step(known.part.removeprefix("colon_"), pad=" " if "_" in flags else known.pad)]


def _read_pieces(written: str) -> list[Step]:
    return [
        step
        for piece in _pieces(written)
        for step in (_literals(piece) if isinstance(piece, str) else _read(piece, written))
    ]


def _check_parts(parts: Sequence[str], written: str) -> None:
    """Refuse a format that says a part twice, none at all, or weeks without what makes days of them."""
    text = f"the format {_shown(written)}"
    if not parts:
        raise NoMatchError(f"{text} has no directive, such as %Y")
    twice = next((part for part in parts if parts.count(part) > 1), None)
    if twice is not None:
        names = [f"%{name}" for name, each in DIRECTIVES.items() if each.part.removeprefix("colon_") == twice]
        raise NoMatchError(f"{text} says {' or '.join(names)} twice")
    has_weekday = _has_any(parts, _WEEKDAYS)
    has_day = _has_any(parts, ("day", "year_day"))
    if ("iso_year" in parts) != ("iso_week" in parts) or ("iso_week" in parts and not has_weekday):
        raise NoMatchError(f"{text}: %G and %V are read together, with a day of the week (%u, %w, %a or %A)")
    has_week = _has_any(parts, ("sunday_week", "monday_week"))
    if has_week and not has_day and not (has_weekday and _has_any(parts, ("year", "short_year"))):
        raise NoMatchError(f"{text}: a week is read with its year and a day of the week (%u, %w, %a or %A)")


def _has_any(parts: Sequence[str], some: Collection[str]) -> bool:
    return any(part in some for part in parts)
