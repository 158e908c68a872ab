"""Sizes, headers, names, blobs, and the tools that read the whole tree."""

import ast
import functools
import inspect
import re
import subprocess
import sys
import tomllib

import pytest

from engine import Environment
from tests.tidy.imports import ROOT, source_files

#: files over the gate, each with its reason
LONG_FILES: dict[str, str] = {}
#: signatures over the gate that pyproject.toml lists, and how many parameters they have; may only shrink
#: (read_csv, join and write_* are what users call: as many options as files and joins have manners, and all go by name)
LONG_SIGNATURES = {
    "engine/api/relational_calls.py": {"join": 11, "asof_join": 9},
}
#: the same of Cython, where ruff does not look
LONG_NATIVE_SIGNATURES = {"engine/records/column_writer.pyx": {"_write_bytes": 9}}
PARAMETERS_MAX = 8
LINES_MAX = 500
FUNCTION_LINES_MAX = 60
LINE_LENGTH_MAX = 120
BLOB_BYTES_MAX = 256 << 10
BANNED_NAMES = {"utils", "util", "common", "helpers", "misc"}


def tracked_files():
    done = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    return [ROOT / line for line in done.stdout.splitlines() if (ROOT / line).is_file()]


def relative(path):
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else path.name


def breaks_of(rule, paths):
    """What the files that break a rule say of themselves, a line each: one test a rule, all files at once."""
    return [f"{relative(path)}: {what}" for path in paths for what in rule(path)]


def python_files():
    return [path for path in source_files() if path.suffix == ".py"]


def too_long(path):
    count = len(path.read_text(encoding="utf-8").splitlines())
    if count > LINES_MAX and relative(path) not in LONG_FILES:
        yield f"{count} lines"


def faults_of_form(path):
    yield from too_long(path)
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines()
    for number, line in enumerate(lines, 1):
        if len(line) > LINE_LENGTH_MAX:
            yield f"line {number} has more than {LINE_LENGTH_MAX} characters"
    if path.suffix in (".py", ".pyx") and not re.match(r'\s*(?:#[^\n]*\n)*\s*"""', text):
        yield "no module docstring"
    if path.suffix == ".pxd" and not text.startswith("#"):
        yield "no header"
    if path.stem in BANNED_NAMES:
        yield "a name that says nothing"


@functools.cache
def shape_of(path):
    """Return functions (name, lines, parameters as ruff's PLR0913 counts), and lines of bare excepts and of prints.

    Two rules ask for it, and to parse all modules takes seconds.
    """
    functions, excepts, prints = [], [], []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            names = [a.arg for a in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
            count = len([name for name in names if name not in ("self", "cls")])
            functions.append((node.name, (node.end_lineno or node.lineno) - node.lineno + 1, count))
        elif isinstance(node, ast.ExceptHandler) and node.type is None:
            excepts.append(node.lineno)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print":
            prints.append(node.lineno)
    return functions, excepts, prints


def faults_of_functions(path):
    functions, excepts, prints = shape_of(path)
    prints_allowed = (
        "cli" in path.parts or "examples" in path.parts or "spark" in path.parts or path.name == "data_set.py"
    )
    yield from (f"{name} has {length} lines" for name, length, _ in functions if length > FUNCTION_LINES_MAX)
    yield from (f"bare except in line {line}" for line in excepts)
    if not prints_allowed:
        yield from (f"print in line {line}" for line in prints)


def long_signatures(path):
    """Functions of a file with too many parameters, and how many they have."""
    return {name: count for name, _, count in shape_of(path)[0] if count > PARAMETERS_MAX}


def native_parameters(text):
    """Names and parameters of the functions of a Cython source, self left out; declarations in a .pxd as well."""
    code = re.sub(r'(?s)""".*?"""', '""', text)
    code = re.sub(r"#[^\n]*", "", code)
    for head in re.finditer(r"(?m)^[ \t]*(?:c?p?def)\b(?![^\n(]*=)[^\n(]*?(\w+)\(", code):
        depth, begin, end, parameters = 1, head.end(), head.end(), []
        while depth:
            letter = code[end]
            depth += (letter in "([{") - (letter in ")]}")
            if (letter == "," and depth == 1) or depth == 0:
                parameters.append(code[begin:end].strip())
                begin = end + 1
            end += 1
        yield head[1], [one for one in parameters if one not in ("", "self", "cls", "*", "/")]


def long_native_signatures(path):
    functions = native_parameters(path.read_text(encoding="utf-8"))
    return {name: len(parameters) for name, parameters in functions if len(parameters) > PARAMETERS_MAX}


def unnamed_modules(chapter):
    text = chapter.read_text(encoding="utf-8")
    modules = {path.stem for path in chapter.parent.iterdir() if path.suffix in (".py", ".pyx")} - {"__init__"}
    for module in sorted(modules):
        if not re.search(rf"\b{module}\b", text):
            yield f"does not name {module}"


def test_files_are_short_and_say_what_they_are():
    assert breaks_of(faults_of_form, source_files()) == []
    assert breaks_of(too_long, source_files("tests", "docs")) == []


def test_functions_are_short_and_nothing_is_caught_bare_or_printed():
    assert breaks_of(faults_of_functions, python_files()) == []


def test_the_list_of_long_signatures_only_shrinks():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["ruff"]["lint"]
    assert settings["pylint"]["max-args"] == PARAMETERS_MAX
    excused = {path for path, rules in settings["per-file-ignores"].items() if "PLR0913" in rules}
    assert excused == set(LONG_SIGNATURES), "pyproject.toml and LONG_SIGNATURES name the same files"
    found = {relative(path): long for path in python_files() if (long := long_signatures(path))}
    assert found == LONG_SIGNATURES, "a signature that became shorter leaves both lists; none comes to them"


def test_the_list_of_long_native_signatures_only_shrinks():
    sources = [path for path in source_files() if path.suffix in (".pyx", ".pxd", ".pyi")]
    found = {relative(path): long for path in sources if (long := long_native_signatures(path))}
    assert found == LONG_NATIVE_SIGNATURES, "a signature that became shorter leaves the list; none comes to it"


def test_parameters_of_native_functions_are_counted():
    text = """
cdef extern from *:
    uint64_t scale "NAME" (uint64_t hash, uint64_t cells) noexcept nogil
cdef class A:
    cdef int32_t* field         # (a, b)
    cdef object made = made_of(1, 2, 3)
    def __cinit__(self, PagePool pool not None, name=(1, 2), *, double[::1, :] views=None,
                  last=None):
        pass
    cdef inline uint64_t* cell(self) noexcept nogil
cpdef tuple of(const uint8_t[::1] data, int (*compare)(int, int))
"""
    found = {name: len(parameters) for name, parameters in native_parameters(text)}
    assert found == {"__cinit__": 4, "cell": 0, "of": 2}


def test_the_long_call_of_users_takes_its_options_by_name():
    kinds = [each.kind for each in inspect.signature(Environment.read_csv).parameters.values()]
    assert kinds.count(inspect.Parameter.POSITIONAL_OR_KEYWORD) == 3, "self, path, schema"
    assert set(kinds[3:]) == {inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.VAR_KEYWORD}


def test_chapters_of_rooms_name_their_modules():
    assert breaks_of(unnamed_modules, sorted((ROOT / "engine").rglob("__init__.py"))) == []


def test_the_rules_see_what_breaks_them(tmp_path):
    bad = tmp_path / "utils.py"
    bad.write_text("try:\n    print(1)\nexcept:\n    pass\n" + "#" * 121 + "\n" * 500 + "def f():\n" + "    f()\n" * 60)
    form = list(faults_of_form(bad))
    assert form == [
        "565 lines",
        "line 5 has more than 120 characters",
        "no module docstring",
        "a name that says nothing",
    ]
    assert sorted(faults_of_functions(bad)) == ["bare except in line 3", "f has 61 lines", "print in line 2"]
    chapter = tmp_path / "__init__.py"
    chapter.write_text('"""Nothing."""')
    assert list(unnamed_modules(chapter)) == ["does not name utils"]


def test_nothing_is_marked_unfinished_and_no_blob_or_generated_file_is_tracked():
    marks = re.compile(r"\b(TO" + r"DO|FIX" + r"ME|XX" + r"X|HA" + r"CK)\b")
    for path in tracked_files():
        assert path.stat().st_size <= BLOB_BYTES_MAX, f"{relative(path)} is large"
        assert path.suffix not in (".so", ".c", ".pyc", ".html"), relative(path)
        if path.suffix in (".py", ".pyx", ".pxd", ".pyi", ".sh"):
            assert not marks.search(path.read_text(encoding="utf-8")), relative(path)


def test_only_commands_are_executable():
    for path in tracked_files():
        is_command = path.parent in (ROOT / "bin", ROOT / ".ci") and path.name != "config.sh"
        assert bool(path.stat().st_mode & 0o100) == is_command, relative(path)


def test_every_module_of_a_native_room_has_a_stub_where_python_imports_it():
    python_imports = set()
    for path in [path for path in source_files() if path.suffix == ".py"]:
        python_imports.update(re.findall(r"(?m)^\s*from\s+(engine[\w.]+)\s+import", path.read_text(encoding="utf-8")))
    for path in [path for path in source_files() if path.suffix == ".pyx"]:
        if ".".join(path.relative_to(ROOT).with_suffix("").parts) in python_imports:
            assert path.with_suffix(".pyi").exists(), f"{relative(path)} has no .pyi"


@pytest.mark.parametrize(
    "command",
    [["ruff", "check", "."], ["ruff", "format", "--check", "."], pytest.param(["mypy"], marks=pytest.mark.thorough)],
    ids=" ".join,
)
def test_the_tools_are_content(command):
    done = subprocess.run([sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
