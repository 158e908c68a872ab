"""The board of Grafana, the rules of Prometheus and the page about them name metrics that there are."""

import json
import subprocess

import pytest
import yaml

from tests.entrypoint.conftest import ROOT
from tests.entrypoint.monitoring import BOARD, RULES, families, metric_names, names_in, needs_prometheus

PAGE = ROOT / "docs" / "pages" / "operating" / "monitoring.md"


def rules():
    return [rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]


def queries():
    """Return the queries of the board, with the panels that have them."""
    panels = json.loads(BOARD.read_text())["panels"]
    return [(panel["title"], target["expr"]) for panel in panels for target in panel.get("targets", ())]


def test_rules_and_board_ask_for_metrics_that_there_are():
    names = metric_names()
    asked = [(rule["alert"], rule["expr"]) for rule in rules()] + queries()
    assert len(asked) > 30
    assert {where: names_in(query) - names for where, query in asked if not names_in(query) <= names} == {}
    assert all(names_in(query) or "up{" in query for _, query in asked)


def test_panels_of_the_board_lie_beside_each_other():
    taken = {}
    for panel in json.loads(BOARD.read_text())["panels"]:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        for x in range(place["x"], place["x"] + place["w"]):
            for y in range(place["y"], place["y"] + place["h"]):
                assert (x, y) not in taken, f"{panel['title']} lies on {taken[x, y]}"
                taken[x, y] = panel["title"]


def test_an_alert_says_what_is_wrong_and_what_to_do():
    for rule in rules():
        assert rule["alert"].startswith("Drey")
        assert rule["labels"]["severity"] in ("page", "ticket")
        assert set(rule["annotations"]) == {"summary", "description"}


def test_the_page_names_every_metric_and_every_alert():
    text = PAGE.read_text()
    #: names as the page has them: a histogram by its family
    names = {f"{family.name}_total" if family.type == "counter" else family.name for family in families()}
    assert [name for name in sorted(names) if f"`{name}`" not in text] == []
    assert [rule["alert"] for rule in rules() if f"`{rule['alert']}`" not in text] == []
    assert names_in(text) - metric_names() - names == set()


@needs_prometheus
@pytest.mark.parametrize(
    "words", [("rules", "drey.rules.yaml"), ("config", "prometheus.yaml")], ids=lambda words: words[0]
)
def test_promtool_finds_nothing_wrong(words):
    kind, name = words
    done = subprocess.run(
        ["promtool", "check", kind, str(RULES.parent / name)], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stdout + done.stderr
