"""Build of the native modules: one extension for each .pyx, in one of three profiles.

    DREY_BUILD=release    (default) optimised, no checks
    DREY_BUILD=debug      assertions, bounds checks, compiler annotation; with DREY_ASAN=1 the address sanitizer
    DREY_BUILD=coverage   line tracing, so that coverage counts .pyx files

    DREY_ANNOTATE=1       a release build keeps what Cython says (build/translated.txt) and its annotation beside each
                          module; tests/tidy/test_native.py reads them and need not translate all of it once more

What each module would otherwise contain of Cython itself, memory views and function objects, lies in one more module,
engine._cython, which Cython writes and which has no source: half of what the compiler had to do, and of the size.

Directives live here and never in a file's header, so that a file means the same everywhere. The generated C stays
beside its .pyx: the coverage plugin reads it there. It is made when modules are built, so that a source distribution
has the .pyx and nothing else.

Test-only modules (tests/native) are built in every profile where the modules lie beside their sources, and never
packaged. A wheel has besides the packages what lies beside them in a checkout, in engine/delivered: ``conf``, and what
is no console script of ``bin`` (see ``engine/config/home.py``).
"""

import contextlib
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, find_packages, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py

ROOT = Path(__file__).parent
PROFILES = ("release", "debug", "coverage")
#: Cython and the compiler run once for each module, a module a core
PROCESSES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
#: the profile of the modules that lie beside their sources
PROFILE_MARK = ROOT / "build" / "profile"
#: what Cython has said of annotated release builds beside their sources since the first of them
SAID = ROOT / "build" / "translated.txt"
#: what a wheel has of the folders beside the packages; nothing that a person has put there
DELIVERED = {
    "conf": (
        *("config.yaml", "masters", "workers", "zoo.cfg", "spark-log4j2.properties", "container.yaml"),
        *("grafana/drey.json", "prometheus/drey.rules.yaml", "prometheus/prometheus.yaml"),
        *(f"systemd/drey-{name}.service" for name in ("historyserver", "jobmanager", "taskmanager")),
        *(f"kubernetes/{name}.yaml" for name in ("drey", "job", "kustomization", "namespace", "zookeeper")),
        *(f"helm/drey/{name}" for name in ("Chart.yaml", "values.yaml", "values.schema.json")),
        *(f"helm/drey/templates/{name}" for name in ("NOTES.txt", "_parts.tpl", "application.yaml", "config.yaml")),
        *(f"helm/drey/templates/{name}.yaml" for name in ("data", "historyserver", "jobmanager", "taskmanager")),
    ),
    "bin": ("config.sh", "make-certificates.sh"),
}

#: what Cython adds to modules, once for all of them
SHARED = "engine._cython"

#: packages that lie within engine and are installed under names of their own: what programs import, and what Spark 4
#: looks for, which finds data sources in packages of such names
NAMED = {"drey": "engine/drey", "pyspark_drey": "engine/spark/found_by_name"}

DIRECTIVES = {
    "language_level": "3str",
    "embedsignature": True,
    "binding": True,
    "auto_pickle": False,
    "freethreading_compatible": False,
}
RELEASE_DIRECTIVES = {
    "boundscheck": False,
    "wraparound": False,
    "initializedcheck": False,
    "cdivision": True,
}


def build_profile() -> str:
    """Return the profile named by DREY_BUILD."""
    profile = os.environ.get("DREY_BUILD", "release")
    if profile not in PROFILES:
        raise SystemExit(f"DREY_BUILD={profile}: choose one of {', '.join(PROFILES)}")
    return profile


def compiler_settings(profile: str) -> dict[str, list]:
    """Return the compile and link arguments of a profile."""
    if profile == "release":
        # x86-64-v2 brings the CRC32 and population count instructions; every server of the last ten years has them.
        arguments = ["-O3", "-fno-math-errno", "-g0"]
        if os.uname().machine == "x86_64":
            arguments.append("-march=x86-64-v2")
        return {"extra_compile_args": arguments, "define_macros": [("NDEBUG", "1")]}
    arguments = ["-O0", "-g", "-UNDEBUG"]
    if os.uname().machine == "x86_64":
        arguments.append("-march=x86-64-v2")
    macros = []
    link_arguments: list[str] = []
    if profile == "coverage":
        macros = [("CYTHON_TRACE_NOGIL", "1"), ("CYTHON_USE_SYS_MONITORING", "0")]
        arguments += ["-include", "tests/native/traced_mutex.h"]
    elif os.environ.get("DREY_ASAN") == "1":
        arguments += ["-fsanitize=address", "-fno-omit-frame-pointer"]
        link_arguments = ["-fsanitize=address"]
    return {"extra_compile_args": arguments, "extra_link_args": link_arguments, "define_macros": macros}


def module_name(source: Path) -> str:
    """Return the dotted name of a source file relative to the root."""
    return ".".join(source.relative_to(ROOT).with_suffix("").parts)


def profile_text(profile: str) -> str:
    """Return what distinguishes builds of the same sources."""
    return f"{profile} asan" if os.environ.get("DREY_ASAN") == "1" else profile


def profile_has_changed(profile: str) -> bool:
    """Return whether what is built now comes from another profile, which time stamps do not tell."""
    last = PROFILE_MARK.read_text() if PROFILE_MARK.exists() else "release"
    return last != profile_text(profile)


class BuildPackages(build_py):
    """Puts what was delivered beside the packages into a wheel."""

    def run(self) -> None:
        """Copy."""
        if self.editable_mode:
            super().run()
            return
        # what an earlier build has left there would be packaged, too
        shutil.rmtree(self.build_lib, ignore_errors=True)
        super().run()
        for folder, names in DELIVERED.items():
            target = Path(self.build_lib) / "engine" / "delivered" / folder
            target.mkdir(parents=True)
            for name in names:
                (target / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / folder / name, target / name)


class BuildNative(build_ext):
    """Builds the modules, several at once, and notes with which profile."""

    def finalize_options(self) -> None:
        """Compile a module a core: an editable installation forgets the options that setup() is given."""
        super().finalize_options()
        self.parallel = self.parallel or PROCESSES

    def run(self) -> None:
        """Translate and compile."""
        is_beside_sources = self.inplace or self.editable_mode
        if is_beside_sources and os.environ.get("DREY_BUILT"):
            return  # bin/config.sh has built them; here all of them were compiled anew
        if not is_beside_sources:
            self.extensions = [module for module in self.extensions if not module.name.startswith("tests.")]
        translated = {module.name: module for module in translate(self.extensions, build_profile(), self.force)}
        for module in self.extensions:
            module.sources = translated[module.name].sources
            module.depends = translated[module.name].depends
        self.done = 0
        super().run()
        if is_beside_sources:
            PROFILE_MARK.parent.mkdir(exist_ok=True)
            PROFILE_MARK.write_text(profile_text(build_profile()))

    def build_extension(self, ext: Extension) -> None:
        """Compile a module, and say how many are done: all of them take minutes."""
        super().build_extension(ext)
        self.done += 1
        print(f"[{self.done:3d}/{len(self.extensions)}] {ext.name}", flush=True)


def extensions(profile: str) -> list[Extension]:
    """Return one extension for each source."""
    sources = sorted([*ROOT.glob("engine/**/*.pyx"), *ROOT.glob("tests/native/*.pyx")])
    settings = compiler_settings(profile)
    named = [(module_name(source), [str(source.relative_to(ROOT))]) for source in sources]
    return [Extension(name, files, **settings) for name, files in [(SHARED, []), *named]]


@contextlib.contextmanager
def noted(file: Path) -> Iterator[None]:
    """Add what this process and its children say meanwhile to a file; then say it."""
    file.parent.mkdir(exist_ok=True)
    sys.stdout.flush()
    streams = [os.dup(1), os.dup(2)]
    with file.open("ab") as notes:
        begin = notes.tell()
        for stream in (1, 2):
            os.dup2(notes.fileno(), stream)
        try:
            yield
        finally:
            sys.stdout.flush()
            for stream, kept in enumerate(streams, 1):
                os.dup2(kept, stream)
                os.close(kept)
            os.write(2, file.read_bytes()[begin:])


def translate(modules: list[Extension], profile: str, force: bool) -> list[Extension]:
    """Return the extensions with sources in C, made with the profile's directives; force: also what has not changed."""
    directives = dict(DIRECTIVES)
    if profile == "release":
        directives |= RELEASE_DIRECTIVES
    if profile == "coverage":
        directives["linetrace"] = True
    is_noted = profile == "release" and os.environ.get("DREY_ANNOTATE") == "1"
    is_annotated = is_noted or profile == "debug"
    if not is_noted:
        SAID.unlink(missing_ok=True)
    with noted(SAID) if is_noted else contextlib.nullcontext():
        return cythonize(
            modules,
            compiler_directives=directives,
            annotate=is_annotated,
            nthreads=PROCESSES,
            force=force,
            shared_utility_qualified_name=SHARED,
        )


if __name__ == "__main__":
    os.chdir(ROOT)
    profile = build_profile()
    setup(
        packages=[*find_packages(include=["engine", "engine.*", "ha", "ha.*"], exclude=["engine.drey"]), *NAMED],
        package_dir=NAMED,
        ext_modules=extensions(profile),
        cmdclass={"build_ext": BuildNative, "build_py": BuildPackages},
        options={"build_ext": {"force": profile_has_changed(profile)}},
    )
