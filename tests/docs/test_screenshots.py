"""The pictures of the documentation: those that are there are small and shown, and each can be made again."""

from __future__ import annotations

import pytest

from tests.docs.screenshots import BYTES_MAX, NAMES, PICTURES, make_pictures
from tests.rest.browser import needs_browser

PAGES = PICTURES.parents[1]


def is_picture(content):
    return content[:4] == b"RIFF" and content[8:12] == b"WEBP"


def test_every_picture_is_small_and_shown_with_words_for_those_who_do_not_see_it():
    assert {path.name for path in PICTURES.iterdir()} == {f"{name}.webp" for name in NAMES}
    texts = [path.read_text(encoding="utf-8") for path in PAGES.rglob("*.md")]
    for path in PICTURES.iterdir():
        content = path.read_bytes()
        assert is_picture(content) and len(content) <= BYTES_MAX, path.name
        before = [text.partition(f"pictures/{path.name})")[0] for text in texts if f"pictures/{path.name})" in text]
        assert before, f"no page shows {path.name}"
        for text in before:
            assert len(text.rpartition("![")[2].partition("]")[0].split()) >= 5, path.name


@pytest.mark.thorough
@pytest.mark.processes
@needs_browser
def test_the_pictures_are_made_of_real_runs(tmp_path):
    seen = make_pictures(tmp_path, 0.5)
    assert tuple(seen) == NAMES
    for name in NAMES:
        content = (tmp_path / f"{name}.webp").read_bytes()
        assert is_picture(content) and len(content) <= 2 * BYTES_MAX
    for name, begins in {
        "skewed-key": "times the rows",
        "slow-function": "of the time",
        "spilled-rows": "spilled",
    }.items():
        assert begins in seen[name].text.split("duration")[0], seen[name].text[:500]
        assert seen[name].headings[1:5] == ["Plan", "Time", "Memory and spill", "Vertices"]
        assert seen[name].drawings == 3
    for name in ("rentals-plan", "rentals-job"):
        assert "trips.csv" in seen[name].text and "stations.csv" in seen[name].text
        assert seen[name].headings[1:3] == ["Plan", "Time"]
    assert seen["history"].headings == ["Drey: jobs that have ended", "Jobs"]
    assert all(name in seen["history"].text for name in ("rentals", "nightly_risk", "CANCELED"))
    assert seen["overview"].headings == ["Drey", "Jobs", "TaskManagers", "JobManagers"]
    assert "risk_of_today" in seen["overview"].text and "FINISHED" in seen["overview"].text
    assert seen["flame-graph"].headings[1:] == ["On a processor", "Most time of their own"]
    assert seen["flame-graph"].drawings >= 1
