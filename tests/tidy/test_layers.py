"""Imports go downward only, also in Cython files; heavy packages stay where they belong."""

import subprocess
import sys
from collections import defaultdict

from tests.tidy.imports import ROOT, imported_modules, room_of, source_files
from tests.tidy.layers import (
    CONFINED,
    FORBIDDEN_IN_PURE_ROOMS,
    HA_INTERFACES_FROM,
    HA_SERVICES_FROM,
    LAYERS,
    PURE_ROOMS,
    level_of,
)

FREE = {"__init__", "examples"}
#: the longest chain of imports within a room that users' calls pass through
FLOORS_MAX = {"api": 10, "column_expressions": 10, "lowering": 10, "sql": 8, "sql_values": 8}
#: classes from which what users call is derived, itself and ``object`` among them
BASES_MAX = 8


def engine_imports(path):
    for module in imported_modules(path):
        parts = module.split(".")
        if parts[0] == "engine" and len(parts) > 1:
            yield parts[1]


def test_the_reader_sees_imports_and_cimports(tmp_path):
    path = tmp_path / "x.pyx"
    path.write_text(
        '"""from engine.cli import a"""\nfrom engine.sort.x cimport (A,\n  B)\n'
        "cimport engine.join.y\n# import engine.api\n"
    )
    assert imported_modules(path) == {"engine.sort.x", "engine.sort.x.A", "engine.sort.x.B", "engine.join.y"}


def upward_imports(path):
    """Rooms that a file imports and that are not below its own."""
    room = room_of(path)
    if room in FREE:
        return
    for target in sorted(set(engine_imports(path)) - {room, *FREE}):
        is_room = (ROOT / "engine" / target).exists() or (ROOT / "engine" / f"{target}.py").exists()
        if is_room and level_of(target) >= level_of(room):
            yield target


def test_rooms_import_only_lower_rooms():
    files = source_files("engine")
    assert [f"{path.relative_to(ROOT)} imports {target}" for path in files for target in upward_imports(path)] == []


def test_every_room_is_in_the_table():
    rooms = {room_of(path) for path in source_files("engine")} - FREE
    assert rooms <= {room for line in LAYERS for room in line}


def test_ha_imports_nothing_from_engine_and_only_roots_see_its_services():
    for path in source_files("ha"):
        assert not list(engine_imports(path)), path
    for path in source_files("engine"):
        for module in imported_modules(path):
            if module.split(".")[0] != "ha":
                continue
            if module == "ha" and path == ROOT / "engine" / "__init__.py":
                continue  # the name alone, before a script's folder can take it: no service is loaded
            allowed = HA_SERVICES_FROM | (HA_INTERFACES_FROM if module.startswith("ha.interfaces") else frozenset())
            assert room_of(path) in allowed, f"{path.relative_to(ROOT)} imports {module}"


def test_confined_packages_stay_in_their_rooms():
    for path in source_files():
        if room_of(path) in FREE:
            continue
        for module in imported_modules(path):
            package = module.split(".")[0]
            if package in CONFINED:
                assert room_of(path) in CONFINED[package], f"{path.relative_to(ROOT)} imports {package}"
            if room_of(path) in PURE_ROOMS or room_of(path) == "ha":
                assert package not in FORBIDDEN_IN_PURE_ROOMS, f"{path.relative_to(ROOT)} imports {package}"


def test_the_job_manager_loads_neither_arrow_nor_pickle():
    rooms = (
        "graph",
        "adaptive",
        "optimizer",
        "gateways",
        "rpc",
        "commit",
        "jobmaster",
        "dispatcher",
        "resourcemanager",
    )
    modules = [
        ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for room in rooms
        for path in sorted((ROOT / "engine" / room).glob("*.py"))
    ]
    script = f"import importlib, sys\nfor name in {modules!r}: importlib.import_module(name)\n"
    script += "print(sorted({'pyarrow', 'cloudpickle', 'numpy', 'pandas'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def imports_inside(paths):
    """Return what each module of a room imports of it: cimports, and what only types need, are counted as well."""
    modules = {".".join(path.relative_to(ROOT).with_suffix("").parts) for path in paths}
    graph = {module: set() for module in modules}
    for path in paths:
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        graph[module] |= imported_modules(path) & modules - {module}
    return graph


def circles(graph):
    """Modules that import themselves through others, with those others."""
    return {name: sorted(found) for name in graph if name in (found := reachable(graph, name))}


def test_there_are_no_import_circles_inside_a_room():
    """Each room's files form a directed graph without circles, imports under ``if TYPE_CHECKING`` included."""
    rooms = defaultdict(list)
    for path in source_files("engine", "ha"):
        if path.stem != "__init__":
            rooms[room_of(path)].append(path)
    assert len(rooms) > 50
    for room in rooms.keys() - FREE:
        graph = imports_inside(rooms[room])
        assert circles(graph) == {}, room
        if room in FLOORS_MAX:
            assert floors(graph) <= FLOORS_MAX[room], f"{room}: {' > '.join(longest_chain(graph))}"


def longest_chain(graph):
    """Return a longest chain of imports of a graph without circles, the importing module first."""
    longest = {}

    def chain(name):
        if name not in longest:
            longest[name] = [name, *max((chain(below) for below in graph[name]), key=len, default=[])]
        return longest[name]

    return max(map(chain, graph), key=len)


def floors(graph):
    return len(longest_chain(graph))


def test_floors_are_counted():
    assert longest_chain({"a": {"b", "c"}, "b": {"c"}, "c": set(), "d": {"c"}}) == ["a", "b", "c"]
    assert floors({"a": set(), "b": set()}) == 1


def test_what_users_call_has_few_bases():
    """A call is found in one of few modules."""
    script = "from engine import DataSet, Environment; print(len(DataSet.__mro__), len(Environment.__mro__))"
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert all(int(count) <= BASES_MAX for count in done.stdout.split())


def test_a_circle_through_types_is_seen():
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}).keys() == {"a", "b", "c"}
    assert circles({"a": {"b"}, "b": {"c"}, "c": set()}) == {}


def reachable(graph, start):
    seen, waiting = set(), list(graph.get(start, ()))
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            waiting.extend(graph.get(name, ()))
    return seen
