"""compose.yaml against the Compose Specification; test_image.py runs its services."""

import pytest
import yaml

from tests.tidy.imports import ROOT

compose_spec = pytest.importorskip("compose_spec", reason="the Compose Specification is not installed")


def merged():
    """Return the file as Compose reads it: merged, and with its variables filled in."""
    text = yaml.safe_dump(yaml.safe_load((ROOT / "compose.yaml").read_text()))
    return text.replace("${DREY_IMAGE:-drey}", "drey")


def test_the_file_is_what_compose_knows():
    compose_spec.PyCompose.from_yaml(merged()).validate()


@pytest.mark.parametrize(
    ("there", "wrong"), [("read_only: true", "read_onli: true"), ("- cluster.secret\n", "- cluster.secrat\n")]
)
def test_what_compose_does_not_know_is_found(there, wrong):
    assert there in merged()
    with pytest.raises(ValueError, match=wrong.strip("- \n").partition(":")[0]):
        compose_spec.PyCompose.from_yaml(merged().replace(there, wrong, 1)).validate()
