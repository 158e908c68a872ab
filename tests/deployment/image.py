"""The Dockerfile's image without Docker: its lines are followed in a root file system made by debootstrap.

    image = build(ROOT / "Dockerfile", folder, bases={"debian:bookworm-slim": root}, contexts={"wheel": dist})
    image.start(["jobmanager.sh", "start-foreground"], volumes={"/data": path}, environment={...}, prefix=[...])

    FROM  ─► a copy of the base, or of an earlier stage          COPY  ─► from the context, a stage, a named context
    RUN   ─► /bin/sh in a chroot with mounts of its own           ENV, ARG, USER, WORKDIR, ENTRYPOINT, CMD, HEALTHCHECK

A stage that the last one does not need is left out, as BuildKit does; one that ``contexts`` names is that folder, as
with ``--build-context``. What runs has the image's user, no rights, a root that cannot be written, a /tmp of its own,
and ends as a whole: ``end(process)``.
An instruction that is not known here is an error: the Dockerfile is what is tested. Needs root and debootstrap.
"""

import contextlib
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path

import psutil

_IGNORED = {"EXPOSE", "STOPSIGNAL", "LABEL"}
#: settings of pip for the registry that is reached from here, in place of those of a Docker daemon
_CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
_IN_NAMESPACES = ("unshare", "--mount", "--pid", "--fork")


def reason_against():
    """Return why no image can be built here; "" when it can."""
    if os.geteuid() != 0:
        return "an image without Docker needs root"
    for command in ("debootstrap", "unshare", "chroot"):
        if shutil.which(command) is None:
            return f"{command} is not installed"
    return ""


def bootstrap(folder, suite):
    """Return the root of a small Debian in a folder, made there the first time; it is the base of the image."""
    root = folder / suite
    if not (folder / f"{suite}.made").exists():
        shutil.rmtree(root, ignore_errors=True)
        words = ["debootstrap", "--variant=minbase", "--include=ca-certificates", suite, root]
        done = subprocess.run(words, check=False, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
        (folder / f"{suite}.made").touch()
    return root


@dataclass
class Image:
    """A root file system, and what the Dockerfile says of processes in it."""

    root: Path
    environment: dict[str, str] = field(default_factory=dict)
    arguments: dict[str, str] = field(default_factory=dict)
    user: str = "0:0"
    folder: str = "/"
    entrypoint: list[str] = field(default_factory=list)
    command: list[str] = field(default_factory=list)
    healthcheck: list[str] = field(default_factory=list)

    def run_as_root(self, text):
        """Follow a RUN."""
        run = f"cd {self.folder} && {text}"
        with (self.root.parent / f"{self.root.name}.log").open("ab") as log:
            words = _chroot(self.root, ["/bin/sh", "-c", run], is_read_only=False)
            environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", **self.environment, **self.arguments}
            environment |= {"DEBIAN_FRONTEND": "noninteractive", "PIP_CERT": "/run/certificates.pem"}
            done = subprocess.run(words, check=False, stdout=log, stderr=log, env=environment)
        assert done.returncode == 0, f"RUN {text}\n{Path(log.name).read_text(errors='replace')[-4000:]}"

    def start(self, command=(), *, volumes=None, environment=None, prefix=(), entrypoint=None, **arguments):
        """Begin a process of the image: its user, no rights, nothing that it can write but volumes."""
        uid, _, gid = self.user.partition(":")
        rights = ["setpriv", f"--reuid={uid}", f"--regid={gid}", "--clear-groups", "--no-new-privs"]
        rights += ["--bounding-set=-all", "--inh-caps=-all"]
        variables = [f"{name}={value}" for name, value in {**self.environment, **(environment or {})}.items()]
        words = [*(self.entrypoint if entrypoint is None else entrypoint), *(command or self.command)]
        words = [*rights, "env", "-i", "-C", self.folder, *variables, *words]
        return subprocess.Popen([*prefix, *_chroot(self.root, words, volumes or {})], **arguments)

    def size_bytes(self):
        """Return what its files take."""
        said = subprocess.run(["du", "-sb", self.root], check=True, capture_output=True, text=True).stdout
        return int(said.split()[0])


def end(process, number=signal.SIGTERM, within_s=30.0):
    """End what ``start`` began, with all that it has begun: a signal to the first process of its namespace."""
    with contextlib.suppress(psutil.Error):
        for first in psutil.Process(process.pid).children():
            first.send_signal(number)
            try:
                first.wait(within_s)
            except psutil.TimeoutExpired:
                first.kill()
    process.wait()


def _chroot(root, words, volumes=None, *, is_read_only=True):
    """Return a command that runs words in a root, with mounts that end with it."""
    lines = ["set -e", "mount --make-rprivate /", f"mount --bind {root} {root}"]
    devices = ("null", "zero", "random", "urandom", "full")
    lines += [f"touch {root}/dev/{name} && mount --bind /dev/{name} {root}/dev/{name}" for name in devices]
    lines += [f"mkdir -p {root}/dev/shm", f"mount -t tmpfs -o mode=1777 none {root}/dev/shm"]
    lines.append(f"mount -t proc proc {root}/proc")
    if is_read_only:
        for target, source in (volumes or {}).items():
            make = f"mkdir -p {root}{target}"
            if source is not None and Path(source).is_file():
                make = f"mkdir -p $(dirname {root}{target}) && touch {root}{target}"
            lines.append(make)
        lines += [f"mount -o remount,bind,ro {root}", f"mount -t tmpfs -o mode=1777,noexec none {root}/tmp"]
        for target, source in (volumes or {}).items():
            mount = f"mount --bind {source}" if source is not None else "mount -t tmpfs -o mode=0700,uid=10001 none"
            lines.append(f"{mount} {root}{target}")
    else:
        lines += [f"mount -t tmpfs none {root}/run", f"cp {_CERTIFICATES} {root}/run/certificates.pem"]
        lines += [f"touch {root}/etc/resolv.conf", f"mount --bind /etc/resolv.conf {root}/etc/resolv.conf"]
    lines.append(f"exec chroot {root} {shlex.join(words)}")
    return [*_IN_NAMESPACES, "bash", "-c", "\n".join(lines)]


def instructions_of(text):
    """Return the instructions of a Dockerfile as pairs of name and rest."""
    text = re.sub(r"\\\n", " ", re.sub(r"(?m)^\s*#.*\n", "", text))
    return [tuple(line.split(None, 1)) for line in text.splitlines() if line.strip()]


def stages_of(text):
    """Return the stages of a Dockerfile by name, the last under "": (base, instructions); and the first arguments."""
    stages, arguments, current = {}, {}, None
    for name, rest in instructions_of(text):
        if name == "FROM":
            words = _filled(rest, arguments).split()
            current = words[2] if len(words) == 3 else ""
            stages[current] = (words[0], [])
        elif current is None:
            assert name == "ARG", f"{name} before FROM"
            key, _, value = rest.partition("=")
            arguments[key] = value
        else:
            stages[current][1].append((name, rest))
    return stages, arguments


def _filled(text, variables):
    return re.sub(r"\$\{?(\w+)\}?", lambda match: variables.get(match[1], match[0]), text)


def allowed(context):
    """Return the files of the context that .dockerignore lets in."""
    lines = (context / ".dockerignore").read_text().split()
    tops = [line[1:] for line in lines if line.startswith("!")]
    refused = [line.removeprefix("**/") for line in lines if line[0] not in "!*" or line.startswith("**/")]
    for top in tops:
        here = context / top
        for path in sorted(here.rglob("*")) if here.is_dir() else [here]:
            inner = path.relative_to(context)
            names = (*inner.parts, str(inner))
            if path.is_file() and not any(fnmatch(name, pattern) for name in names for pattern in refused):
                yield path


def build(dockerfile, folder, bases, contexts=None):
    """Return the image of the last stage."""
    stages, _ = stages_of(dockerfile.read_text())
    return _Build(dockerfile.parent, folder, stages, bases, contexts or {}).stage("")


class _Build:
    def __init__(self, context, folder, stages, bases, contexts):
        self._context, self._folder = context, folder
        self._stages, self._bases, self._contexts = stages, bases, contexts
        self._made = {}

    def stage(self, name):
        """Return a stage, made when it is first asked for."""
        if name not in self._made:
            base, instructions = self._stages[name]
            image = self._made[name] = Image(self._folder / (name or "image"))
            if base == "scratch":
                image.root.mkdir()
            else:
                subprocess.run(["cp", "-a", self._bases[base], image.root], check=True)
            for instruction, rest in instructions:
                self._follow(image, instruction, rest)
        return self._made[name]

    def _follow(self, image, name, rest):
        match name:
            case "RUN":
                image.run_as_root(rest)
            case "COPY":
                self._copy(image, rest)
            case "ARG":
                key, _, value = rest.partition("=")
                image.arguments[key] = value
            case "ENV":
                image.environment |= dict(word.split("=", 1) for word in shlex.split(rest))
            case "USER":
                image.user = rest
            case "WORKDIR":
                image.folder = rest
                (image.root / rest.lstrip("/")).mkdir(parents=True, exist_ok=True)
            case "ENTRYPOINT":
                image.entrypoint = json.loads(rest)
            case "CMD":
                image.command = json.loads(rest)
            case "HEALTHCHECK":
                image.healthcheck = json.loads(rest.partition("CMD")[2])
            case _:
                assert name in _IGNORED, f"{name}: this is not known here"

    def _copy(self, image, rest):
        words = rest.split()
        options = [word for word in words if word.startswith("--")]
        *sources, target = [word for word in words if not word.startswith("--")]
        origin = next((word.partition("=")[2] for word in options if word.startswith("--from=")), None)
        assert len(options) == (origin is not None), f"COPY {rest}: this is not known here"
        if origin is None:
            base = self._context
        else:
            base = self._contexts[origin] if origin in self._contexts else self.stage(origin).root
        to = image.root / (Path(image.folder) / target).as_posix().lstrip("/")
        for source in sources:
            found = sorted(Path(base).glob(source.lstrip("/"))) if source != "." else allowed(self._context)
            assert found, f"COPY {rest}: there is no {source}"
            for path in found:
                self._copy_one(path, to / path.relative_to(base) if source == "." else to, target)

    def _copy_one(self, path, to, target):
        if target.endswith("/"):
            to /= path.name
        to.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["cp", "-a", "-T", path, to], check=True)
