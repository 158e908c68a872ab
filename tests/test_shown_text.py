"""Controls in users' texts are written out wherever a person reads them: on terminals, on pages, in errors."""

import pyarrow as pa

from engine.api.results import format_table
from engine.cli.cluster_jobs import show_status
from engine.client.failure_text import failure_text
from engine.gateways.failure_info import failure_info
from engine.shown_pages import tag
from engine.shown_text import shown, shown_line

BAD = "a\x1b]0;title\x07\0\x9b31m\u202eb\ud800c"
WRITTEN = r"a\x1b]0;title\x07\x00\x9b31m\u202eb\ud800c"


def test_controls_are_written_out_and_lines_and_tabs_stay():
    assert shown(BAD) == WRITTEN
    assert shown("é\tü\n\r\n日本 👍") == "é\tü\n\n日本 👍"
    assert shown_line("a\tb\nc\rd") == r"a\tb\nc\rd"
    assert shown("a\rb\u2028") == r"a\rb\u2028"
    assert shown(shown(BAD)) == WRITTEN


def test_errors_of_functions_carry_none():
    error = ValueError(BAD)
    error.row, error.function_name, error.details = BAD, BAD, f"x\n{BAD}"
    failure = failure_info(error, "map (1/1)")
    assert failure.message == failure.row == WRITTEN
    for text in (failure.function, failure.details, failure_text(failure, BAD)):
        assert WRITTEN in text
        assert not {*"\x1b\0\x07\x9b\u202e\ud800"} & {*text}


def test_pages_carry_none_in_texts_and_attributes():
    assert tag("p", BAD, title=BAD) == f'<p title="{WRITTEN}">{WRITTEN}</p>'


def test_a_table_that_is_shown_has_none():
    text = format_table(pa.table({f"{BAD[:-2]}\t": [f"{BAD[:-2]}\nx"]}), 1)
    assert len(text.splitlines()) == 5
    assert "\x1b" not in text
    assert r"\x00" in text


class _Client:
    def document(self, path):
        numbers = {"read-records": 0, "write-records": 0, "spilled-bytes": 0}
        vertex = {"name": BAD, "tasks": {"FINISHED": 1}, "parallelism": 1, "metrics": numbers}
        return {"name": BAD + "\n", "state": "FINISHED", "duration": 1, "vertices": [vertex], "decisions": [BAD]}


def test_the_status_of_a_job_on_a_terminal_has_none(capsys):
    class _Options:
        job_id = "0" * 32
        json = False

    assert show_status(_Options, _Client()) == 0
    said = capsys.readouterr().out
    assert said.count(WRITTEN) == 3
    assert "\x1b" not in said
    assert len(said.splitlines()) == 3
