"""Seeds of the model cluster, in a process of their own: the same seed is the same run everywhere.

PYTHONHASHSEED=0 [LOG=INFO] python -m tests.cluster_model.run KIND FIRST COUNT [KIND FIRST COUNT ...]
"""

import gc
import logging
import os
import sys
import time
import traceback

from tests.cluster_model.world import KINDS, run_world


def run_seeds(kind, first, count):
    """Run seeds; return those that have not come to their end."""
    bad, began_s = [], time.process_time()
    for seed in range(first, first + count):
        try:
            run_world(seed, KINDS[kind])
        except Exception:
            bad.append(seed)
            print(f"seed {seed} of {kind}:\n{traceback.format_exc()}", flush=True)
    spent_ms = (time.process_time() - began_s) * 1000 / count
    print(f"{count} seeds of {kind} from {first} on: {spent_ms:.0f} ms of a processor for each, without an end: {bad}")
    return bad


def main(words):
    level = os.environ.get("LOG")
    if level is None:
        logging.disable(logging.CRITICAL)
    else:
        logging.basicConfig(level=level, stream=sys.stdout)
    gc.freeze()  # what modules made is not gone through again and again
    runs = zip(words[::3], words[1::3], words[2::3], strict=True)
    bad = [run_seeds(kind, int(first), int(count)) for kind, first, count in runs]
    return 1 if any(bad) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
