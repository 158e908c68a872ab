"""What a page of HTML has: tags that are closed in order, their names and attributes, its text."""

from __future__ import annotations

from html.parser import HTMLParser

from engine.profile.page_view import View
from engine.profile.profile_making import profile_of
from engine.profile.profile_page import profile_page
from tests.rest.details import JOB_ID

VOID = {"meta", "br", "input"}


class Outline(HTMLParser):
    """Checks that tags are closed in order, and collects text and names of tags."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.names: set[str] = set()
        self.text = ""
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, name, attributes):
        self.names.add(name)
        self.tags.append((name, dict(attributes)))
        assert not any(key.startswith("on") for key, _ in attributes)
        if name not in VOID:
            self.open.append(name)

    def handle_endtag(self, name):
        assert self.open.pop() == name

    def handle_data(self, data):
        self.text += data


def job_page(details, now_ms=11_000, *, opened=None, refreshes=True, has_processes=True):
    """Return the page of a job as the dashboard shows it."""
    view = View(f"/jobs/{JOB_ID}", has_processes, opened, refreshes)
    return profile_page(profile_of(details, now_ms), view)


def contrast(one, other):
    """Return the contrast of two colours as WCAG has it."""

    def luminance(colour):
        digits = colour.removeprefix("#")
        digits = "".join(2 * digit for digit in digits) if len(digits) == 3 else digits
        parts = [int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    bright, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (bright + 0.05) / (dark + 0.05)
