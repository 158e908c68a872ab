"""A leader that writes without pause: ``python -m tests.ha.writer HOSTS CLUSTER`` says what it wrote or was refused."""

import itertools
import sys

from ha.interfaces import StaleEpochError
from tests.ha.candidate import settings_of
from tests.ha.leading import Leading, zookeeper


def main():
    hosts, cluster = sys.argv[1:]
    leading = Leading(zookeeper(settings_of(hosts, cluster))).lead()
    epoch, store = leading.epoch, leading.store
    store.create(epoch, "0a", b"")
    for version in itertools.count():
        try:
            store.replace(epoch, "0a", b"of the first", version)
        except StaleEpochError:
            sys.stdout.write(f"refused {version}\n")
            sys.stdout.flush()
            break
        sys.stdout.write(f"wrote {version}\n")
        sys.stdout.flush()
    leading.close()


if __name__ == "__main__":
    main()
