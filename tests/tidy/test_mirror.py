"""Each module has a test of its own name, or says in its header which test holds it."""

from docs.generators.mechanisms import header_of, named_tests, own_test
from tests.tidy.imports import ROOT, source_files


def modules():
    """Python and Cython modules of the product, without the chapters of packages."""
    found = [path for path in source_files() if path.suffix in (".py", ".pyx") and path.stem != "__init__"]
    return sorted(str(path.relative_to(ROOT)) for path in found)


def fault(module, text):
    """What a module lacks, or None."""
    names = named_tests(header_of(text))
    missing = [name for name in names if not name.startswith("tests/") or not (ROOT / name).is_file()]
    if missing:
        return f"{module}: there is no {missing[0]}"
    if names or (ROOT / own_test(module)).is_file():
        return None
    return f"{module}: no test of its name, and no line 'Held by: tests/...' in its header"


def test_each_module_names_the_test_that_holds_it():
    faults = [fault(module, (ROOT / module).read_text(encoding="utf-8")) for module in modules()]
    assert [what for what in faults if what] == []


def test_what_breaks_the_rule_is_seen():
    nameless = "engine/rooms/nameless.py"
    assert "no test of its name" in fault(nameless, '"""Header.\n"""\nHELD = "Held by: tests/tidy/test_mirror.py"')
    assert "there is no tests/none.py" in fault(nameless, '"""Header.\n\nHeld by: tests/none.py\n"""')
    assert fault(nameless, '"""Header.\n\nHeld by: tests/tidy/test_mirror.py\n"""') is None
    assert fault("engine/closing.py", '"""Closing."""') is None
