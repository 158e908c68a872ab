"""The image of the Dockerfile, built once for all tests that run it."""

import shutil

import pytest

from tests.deployment.image import bootstrap, build, reason_against, stages_of
from tests.tidy.imports import ROOT
from tests.wheels import make_distributions


@pytest.fixture(scope="session")
def image(tmp_path_factory):
    if reason := reason_against():
        pytest.skip(reason)
    kept = ROOT / "build" / "image"
    kept.mkdir(parents=True, exist_ok=True)
    folder = tmp_path_factory.mktemp("image")
    _, arguments = stages_of((ROOT / "Dockerfile").read_text())
    suite = arguments["DEBIAN"]
    _, wheel = make_distributions(tmp_path_factory.mktemp("wheel"))
    bases = {f"debian:{suite}-slim": bootstrap(kept, suite)}
    yield build(ROOT / "Dockerfile", folder, bases, {"wheel": wheel.parent})
    shutil.rmtree(folder)
