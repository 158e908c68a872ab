"""Blocks of code in the documentation run, command lines are those of the commands."""

import re
import shlex
from importlib.util import find_spec

import pytest

from engine import Environment
from engine.cli.main import build_parser
from engine.formats import registry
from tests.docs.pages import PAGES, blocks_of, relative
from tests.tidy.imports import ROOT

pytestmark = [pytest.mark.integration, pytest.mark.quick]

TEXTS = {relative(path): path.read_text(encoding="utf-8") for path in PAGES}
EXAMPLES = {name: blocks for name, text in TEXTS.items() if (blocks := blocks_of(text, "python"))}
#: pages whose blocks run here: those of the cookbook run beside DuckDB, in test_cookbook.py
RUN = [name for name in EXAMPLES if "/cookbook/" not in name]


@pytest.mark.parametrize("page", RUN)
def test_the_blocks_of_a_page_run_and_print_what_it_shows(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(registry, "_ADDED", {})  # formats that a page adds go with it
    namespace = {"__name__": "__main__"}
    try:
        for block in EXAMPLES[page]:
            if block.reason:
                continue
            lines = "\n" * (block.line - 1) + block.code
            exec(compile(lines, str(ROOT / page), "exec"), namespace)
            printed = capsys.readouterr().out
            if block.output is not None:
                assert printed == block.output, f"{page}:{block.line}"
    finally:
        for value in list(namespace.values()):
            if isinstance(value, Environment):
                value.close()
        registry.format_named.cache_clear()


def test_the_job_of_the_readme_writes_what_it_promises(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (block,) = EXAMPLES["README.md"]
    namespace = {"__name__": "__main__"}
    try:
        exec(block.code, namespace)
    finally:
        namespace["env"].close()
    printed = capsys.readouterr().out
    assert "BROADCAST" in printed
    assert printed.splitlines()[-1].startswith("[Row(CurrencyCode='EUR', instruments=")
    parts = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert parts and all(re.fullmatch(r"part-\d{5}\.csv", name) for name in parts)


def commands():
    """Every line of the blocks of shell commands, with its page."""
    for page, text in TEXTS.items():
        for block in blocks_of(text, "bash"):
            for line in re.sub(
                r"<<(\w+)\n.*?\n\1\n", "\n", block.code.replace("\\\n", " "), flags=re.DOTALL
            ).splitlines():
                words = shlex.split(line, comments=True)
                if words:
                    yield page, words


def test_the_command_lines_are_those_of_the_command_line():
    lines = [(page, words[1:]) for page, words in commands() if words[0].removeprefix("bin/") in ("drey", "flink-run")]
    assert len(lines) >= 8
    parser = build_parser()
    for page, words in lines:
        is_short = words[0].endswith(".py") or (words[0].startswith("-") and words[0] not in ("--help", "--version"))
        whole = ["job", "submit", *words] if is_short else words
        try:
            parser.parse_args(whole)
        except SystemExit as end:
            assert end.code == 0, f"{page}: flink-run {shlex.join(words)}"


def test_scripts_modules_and_verbs_that_are_shown_exist():
    verbs = set(re.findall(r"(?m)^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8")))
    for page, words in commands():
        if words[0].startswith("bin/"):
            assert (ROOT / words[0]).is_file(), f"{page}: {words[0]}"
        if words[0] == "make":
            assert {word for word in words[1:] if "=" not in word} <= verbs, f"{page}: {shlex.join(words)}"
        if "-m" in words and words[0].endswith("python"):
            module = words[words.index("-m") + 1]
            assert find_spec(module) is not None, f"{page}: {module}"
            if module == "pytest":
                for word in words[words.index("-m") + 2 :]:
                    assert not word.startswith("tests/") or (ROOT / word).exists(), f"{page}: {word}"


def test_blocks_that_are_not_run_are_few():
    left_out = [block for blocks in EXAMPLES.values() for block in blocks if block.reason]
    run = [block for blocks in EXAMPLES.values() for block in blocks if not block.reason]
    assert len(left_out) * 4 <= len(run)


def test_the_reference_names_every_script():
    generator = (ROOT / "docs" / "generators" / "cli.py").read_text(encoding="utf-8")
    scripts = {path.name for path in (ROOT / "bin").glob("*.sh")} - {"config.sh"}
    assert scripts == set(re.findall(r'\("([\w-]+\.sh)", ', generator))
