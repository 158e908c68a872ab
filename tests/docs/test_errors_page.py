"""The error index has each class of errors with a reason, a remedy, and a program that raises it."""

import re

import pytest

import engine
from docs.generators.error_examples import EXAMPLES, NOT_SHOWN
from docs.generators.errors_page import error_classes, errors_page, reason_and_remedy

PUBLIC = {name for name in engine.__all__ if name.endswith(("Error", "Warning"))}


@pytest.mark.parametrize("kind", error_classes(), ids=lambda kind: kind.__name__)
def test_a_class_says_why_and_what_to_do(kind):
    reason, remedy = reason_and_remedy(kind)
    assert kind.__doc__ and reason.endswith((".", "(`engine.user_warnings`)."))
    assert remedy.endswith("."), f"{kind.__name__}: its docstring has no paragraph that begins with What to do:"


def test_each_public_error_has_a_program_that_raises_it_or_a_reason():
    assert {kind.__name__ for kind in error_classes()} >= PUBLIC
    assert EXAMPLES.keys() | NOT_SHOWN.keys() == PUBLIC
    assert not EXAMPLES.keys() & NOT_SHOWN.keys()


@pytest.mark.integration
def test_the_page_shows_what_the_programs_raise():
    page = errors_page()
    for kind in error_classes():
        assert f"## {kind.__name__}\n" in page or f"| `{kind.__name__}` |" in page
    for name in EXAMPLES:
        section = page.partition(f"\n## {name}\n")[2].partition("\n## ")[0]
        (shown,) = re.findall(r"```text\n(.*?)\n```", section, re.DOTALL)
        assert shown.startswith(f"{name}: ") or name == "JobExecutionError"
    assert "/tmp" not in page
