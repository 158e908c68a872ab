"""Ten real jobs, each slow for a cause of its own: the first sentence of the page names it."""

from __future__ import annotations

import pytest

from tests.bench.causes import JOBS, MissingError, Place

#: jobs that need a real cluster
CLUSTERED = ("slots", "restarts")


@pytest.mark.parametrize(
    "name",
    [pytest.param(each, marks=pytest.mark.processes if each in CLUSTERED else pytest.mark.thorough) for each in JOBS],
)
def test_the_cause_is_named_first(tmp_path, name):
    try:
        profile = JOBS[name](Place(tmp_path, 0.5))
    except MissingError as missing:
        pytest.skip(str(missing))
    assert profile.causes[0].kind == name, [cause.text for cause in profile.causes]
