"""The example of a job's page: its sentence is the one that the page on profiles shows."""

from xml.etree import ElementTree

from docs.generators.profile_example import example_drawing, example_job, example_page
from tests.docs.pages import FOLDER
from tests.rest.outline import Outline


def test_the_example_says_what_the_page_says_of_it():
    (sentence, *_) = [cause.text for cause in example_job().causes]
    assert sentence in (FOLDER / "operating" / "profile.md").read_text(encoding="utf-8")
    assert sentence in Outline(example_page()).text


def test_the_drawing_stands_alone():
    drawing = ElementTree.fromstring(example_drawing())
    texts = [each.text for each in drawing.iter() if each.tag.endswith("}text")]
    assert "6.0 M rows, 96 MB" in texts and any("expected" in text for text in texts)
