"""The package ``drey``: the name by which programs import ``engine``.

    import drey                        the module ``engine`` itself: the same names, loaded when they are first used
    from drey.spark import register    the module ``engine.spark`` itself, as any other below ``drey``

An object has one home, whichever name a program has used: classes say ``engine.errors.DataError``, functions travel to
workers by that name, and ``drey.errors is engine.errors``.

Installed under this name, in whichever environment Drey is installed; a checkout links it there (``bin/config.sh``).
Readers of types find the same names here, and those of modules that users import in files beside this one: errors,
selectors, spark, and folders of examples, formats and graph. They are sources and no stubs, since editors warn of a
stub without a source; nothing runs them.

Held by: tests/test_drey.py
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Sequence
from importlib.abc import InspectLoader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import CodeType, ModuleType
from typing import TYPE_CHECKING

import engine

if TYPE_CHECKING:
    from engine import *
    from engine import __version__ as __version__

_NAME = "drey."


class _SameModule(InspectLoader):
    """Loads ``drey.x`` as ``engine.x``; ``python -m drey.x`` runs its code."""

    def exec_module(self, module: ModuleType) -> None:
        """Put the module of the engine in the place of the one that was made for the name."""
        sys.modules[module.__name__] = importlib.import_module(_own_name(module.__name__))

    def get_code(self, fullname: str) -> CodeType | None:
        """Return the code of the engine's module."""
        loader = importlib.util.find_spec(_own_name(fullname)).loader  # type: ignore[union-attr]
        return loader.get_code(_own_name(fullname)) if isinstance(loader, InspectLoader) else None

    def get_source(self, fullname: str) -> str | None:
        """Return nothing: what has a source has the engine's name."""
        return None


class _Finder(MetaPathFinder):
    """Finds what is below ``drey`` in ``engine``, in front of what would load it a second time from there."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return a spec for a name below ``drey``."""
        if not fullname.startswith(_NAME):
            return None
        own = importlib.util.find_spec(_own_name(fullname))
        if own is None:
            return None
        is_package = own.submodule_search_locations is not None
        return ModuleSpec(fullname, _SameModule(), origin=own.origin, is_package=is_package)


class _Advice(MetaPathFinder):
    """Says what to write for a name of another library; asked for what has been found nowhere."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find nothing. Raises: ImportError for a name that has an advice, in ``from drey import name`` too."""
        package, _, name = fullname.rpartition(".")
        if package == engine.__name__:
            names = importlib.import_module("engine.column_expressions.other_names")
            if advice := names.package_advice(name, engine.__all__):
                raise ImportError(f"cannot import name {name!r} from 'drey'{advice}", name=name)
        of_engine, _, room = package.partition(".")
        if of_engine == engine.__name__ and room in engine.ROOMS_OF_WORDS and (advice := engine.room_advice(name)):
            raise ImportError(f"cannot import name {name!r} from 'drey.{room}'{advice}", name=name)
        return None


def _own_name(fullname: str) -> str:
    return f"{engine.__name__}.{fullname.removeprefix(_NAME)}"


if __name__ == "drey":
    sys.meta_path.insert(0, _Finder())
    sys.meta_path.append(_Advice())
    sys.modules[__name__] = engine
