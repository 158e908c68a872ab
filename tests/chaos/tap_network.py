"""TapNetwork: machines that are network namespaces, and a switch between them that loses, delays and cuts.

    network = TapNetwork(["jm", "tm1"], seed) ─► command("jm") + [...]          runs there, at address("jm")
    with network.inside("jm"): connect(...)                                     sockets of this thread are there
    network.cut("jm", "tm1", both=False)  delay_s = 0.01, 0.04  loss = 0.02  heal()      counts: what was done
    network.close()
    TapNetwork(names, seed, is_ipv6=True)       machines that have no address of IPv4, not even 127.0.0.1

    namespace jm ─ eth0 ═ TAP ─┐
    namespace tm1 ─ eth0 ═ TAP ─┤ this process: one thread reads frames, and writes them to whom they are for
Needs root, /dev/net/tun and iproute2: ``reason_against`` tells what is missing.
"""

import collections
import contextlib
import ctypes
import fcntl
import heapq
import itertools
import os
import random
import select
import shutil
import struct
import subprocess
import threading
import time
from pathlib import Path

_LIBC = ctypes.CDLL(None, use_errno=True)
_CLONE_NEWNET = 0x40000000
_TUNSETIFF = 0x400454CA
_IFF_TAP_WITHOUT_HEADER = 0x0002 | 0x1000
_NAMESPACES = Path("/run/netns")
_FRAME_MAX = 9100
#: frames of one namespace before the others have their turn
_TURN = 64
_POLL_S = 0.05


def reason_against():
    """Return why there can be no such network here; "" when there can."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    if not Path("/dev/net/tun").exists():
        return "/dev/net/tun is not there"
    if shutil.which("ip") is None:
        return "iproute2 is not installed"
    name = f"drey-try-{os.getpid()}"
    made = subprocess.run(["ip", "netns", "add", name], capture_output=True, text=True, check=False)
    if made.returncode:
        return f"no network namespace can be made: {made.stderr.strip()}"
    subprocess.run(["ip", "netns", "del", name], check=True)
    _forget_mount()
    return ""


def _forget_mount():
    """Take away what ``ip netns`` mounts at its first use and leaves, unless there are namespaces of others."""
    if _NAMESPACES.is_dir() and not any(_NAMESPACES.iterdir()):
        subprocess.run(["umount", _NAMESPACES], capture_output=True, check=False)


def _enter(descriptor):
    if _LIBC.setns(descriptor, _CLONE_NEWNET):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


class TapNetwork:
    def __init__(self, names, seed, *, is_ipv6=False):
        self._random = random.Random(seed)
        self._is_ipv6 = is_ipv6
        self._prefix = f"drey-{os.getpid()}"
        self._numbers = {name: number for number, name in enumerate(names, 1)}
        self._taps = []
        self._ends = threading.Event()
        #: (source, target) of links that carry nothing
        self._cut = set()
        #: seconds that each frame is held back, between these two: it overtakes others
        self.delay_s = 0.0, 0.0
        self.loss = 0.0
        self.counts = collections.Counter()
        self._late = []
        self._order = itertools.count()
        for name in names:
            self._taps.append(self._make(name))
        self._thread = threading.Thread(target=self._switch, name="switch")
        self._thread.start()

    def _make(self, name):
        number, namespace = self._numbers[name], self._namespace(name)
        subprocess.run(["ip", "netns", "add", namespace], check=True)
        with self.inside(name):
            tap = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
            fcntl.ioctl(tap, _TUNSETIFF, struct.pack("16sH22x", b"eth0", _IFF_TAP_WITHOUT_HEADER))
        address = f"{self.address(name)}/64 dev eth0 nodad" if self._is_ipv6 else f"{self.address(name)}/24 dev eth0"
        for words in (
            "link set lo up",
            *(["addr del 127.0.0.1/8 dev lo"] if self._is_ipv6 else []),
            f"link set eth0 address 02:00:00:00:00:{number:02x}",
            f"addr add {address}",
            "link set eth0 mtu 9000 up",
        ):
            subprocess.run(["ip", "-n", namespace, *words.split()], check=True)
        return tap

    def _namespace(self, name):
        return f"{self._prefix}-{name}"

    def address(self, name):
        return f"fd78::{self._numbers[name]}" if self._is_ipv6 else f"10.78.0.{self._numbers[name]}"

    def command(self, name):
        """Return what a command begins with that runs there."""
        return ["ip", "netns", "exec", self._namespace(name)]

    @contextlib.contextmanager
    def inside(self, name):
        """Have this thread's new sockets there."""
        namespace = _NAMESPACES / self._namespace(name)
        with Path("/proc/thread-self/ns/net").open() as here, namespace.open() as there:
            _enter(there.fileno())
            try:
                yield
            finally:
                _enter(here.fileno())

    # ---- faults: from any thread, in force at once ----

    def cut(self, source, target, *, both=True):
        """Let nothing through from one to the other; ``both``: nor back."""
        links = {(self._numbers[source], self._numbers[target])}
        self._cut |= links | ({(there, here) for here, there in links} if both else set())

    def isolate(self, name):
        for other in self._numbers:
            if other != name:
                self.cut(name, other)

    def heal(self):
        self._cut = set()
        self.delay_s, self.loss = (0.0, 0.0), 0.0

    # ---- the switch ----

    def _switch(self):
        poll, sources = select.epoll(), {}
        with poll:
            for number, tap in enumerate(self._taps, 1):
                poll.register(tap, select.EPOLLIN)
                sources[tap] = number
            while not self._ends.is_set():
                wait_s = max(0.0, min(_POLL_S, self._late[0][0] - time.monotonic())) if self._late else _POLL_S
                for tap, _ in poll.poll(wait_s):
                    self._forward_some(tap, sources[tap])
                while self._late and self._late[0][0] <= time.monotonic():
                    _, order, target, frame = heapq.heappop(self._late)
                    self.counts["overtaken"] += any(other[1] < order for other in self._late[:8])
                    self._write(target, frame)

    def _forward_some(self, tap, source):
        for _ in range(_TURN):
            try:
                frame = os.read(tap, _FRAME_MAX)
            except BlockingIOError:
                return
            for target in self._targets(source, frame):
                if (source, target) in self._cut:
                    self.counts["cut"] += 1
                elif self.loss and self._random.random() < self.loss:
                    self.counts["lost"] += 1
                elif self.delay_s[1]:
                    self.counts["delayed"] += 1
                    due_s = time.monotonic() + self._random.uniform(*self.delay_s)
                    heapq.heappush(self._late, (due_s, next(self._order), target, frame))
                else:
                    self._write(target, frame)

    def _targets(self, source, frame):
        is_for_all = frame[0] & 1
        if not is_for_all and 0 < frame[5] <= len(self._taps):
            return (frame[5],)
        return [number for number in self._numbers.values() if number != source]

    def _write(self, target, frame):
        self.counts["forwarded"] += 1
        try:
            os.write(self._taps[target - 1], frame)
        except OSError:  # its queue is full, as that of any switch may be
            self.counts["overrun"] += 1

    def close(self):
        self._ends.set()
        self._thread.join()
        for tap in self._taps:
            os.close(tap)
        for name in self._numbers:
            subprocess.run(["ip", "netns", "del", self._namespace(name)], check=True)
        _forget_mount()
