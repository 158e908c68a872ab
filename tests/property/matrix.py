"""Combinations of test conditions: all of them, or a pairwise sample.

A pairwise sample has every pair of values of any two axes in at least one combination (faults that need three
conditions at once are rare); ``TORTURE=1`` takes the whole product, ``TORTURE_PART=2/10`` with it the second
tenth of it. The sample is made greedily and is the same every time.
"""

import itertools
import os
import random

IS_TORTURE = os.environ.get("TORTURE") == "1"
PART, PARTS = map(int, os.environ.get("TORTURE_PART", "1/1").split("/"))


def combinations(axes):
    """Return dicts of axis name -> value: a pairwise sample, or everything when tests are to torture."""
    names = list(axes)
    if IS_TORTURE:
        every = [dict(zip(names, values, strict=True)) for values in itertools.product(*axes.values())]
        random.Random(PARTS).shuffle(every)
        return every[PART - 1 :: PARTS]
    return pairwise(axes)


def pairwise(axes, seed=7):
    """Return a list of combinations that holds every pair of values of two axes."""
    names = list(axes)
    chosen = random.Random(seed)
    missing = {
        (first, x, second, y)
        for first, second in itertools.combinations(names, 2)
        for x in axes[first]
        for y in axes[second]
    }
    found = []
    while missing:
        candidates = [_complete(pair, axes, names, chosen) for pair in chosen.choices(sorted(missing, key=repr), k=20)]
        best = max(candidates, key=lambda one: sum(pair in missing for pair in _pairs(one, names)))
        missing -= set(_pairs(best, names))
        found.append(best)
    return found


def _complete(pair, axes, names, chosen):
    first, x, second, y = pair
    one = {name: chosen.choice(axes[name]) for name in names}
    one[first], one[second] = x, y
    return one


def _pairs(one, names):
    return [(first, one[first], second, one[second]) for first, second in itertools.combinations(names, 2)]


def name_of(one):
    """Return a combination as the name of a test."""
    return "-".join(str(value) for value in one.values())
