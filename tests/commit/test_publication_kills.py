"""Writers killed at any step: an output is the old one or the new one, and gc or the next job leaves nothing else.

``KILLS=500`` says how many are killed, ``SEED=n`` repeats a schedule: ``make kills``.
"""

import os
import random
from collections import Counter

import pytest

from engine.storage.store_client import use_store_settings
from tests.commit.publication_kills import KillingProxy, trials_of
from tests.storage.moto_server import running

pytest.importorskip("deltalake")

pytestmark = [pytest.mark.integration, pytest.mark.processes, pytest.mark.timeout(3600)]
COUNT = int(os.environ.get("KILLS", "30"))


def check(trials):
    found = list(trials)
    counts = Counter(result if result in ("old", "new") else "wrong" for _, _, _, result in found)
    print(f"{len(found)} kills: {dict(counts)}")
    assert [each for each in found if each[3] not in ("old", "new")] == []
    assert counts["old"] > 0
    return counts


def test_kills_on_a_local_disk(tmp_path):
    check(trials_of(os.fspath(tmp_path), COUNT // 2, random.Random(int(os.environ.get("SEED", "1")))))


def test_kills_at_requests_of_a_store(tmp_path):
    with running("data") as store, KillingProxy(store.endpoint).running() as proxy:
        texts = {key: str(value).lower() if value is True else value for key, value in store.settings.items()}
        use_store_settings(texts)
        try:
            chance = random.Random(int(os.environ.get("SEED", "1")))
            check(trials_of(os.fspath(tmp_path), COUNT - COUNT // 2, chance, store, proxy))
        finally:
            use_store_settings({})
