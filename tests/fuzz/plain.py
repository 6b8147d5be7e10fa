"""Fuzzing without guidance: so many changed seeds, the same ones each time. It is quick."""

import random
from pathlib import Path

from .child import seeds_of, start
from .mutations import mutated
from .target import FuzzTarget
from .trial import Trial


def run_plain(target: FuzzTarget, folder: Path, inputs: int, seed: int) -> int:
    """Try the seeds and then `inputs` changes of them, in a process of their own. Its status, as of `os.waitpid`."""
    return start(folder, lambda: _try_all(target, folder, inputs, random.Random(seed)))


def _try_all(target: FuzzTarget, folder: Path, inputs: int, choice: random.Random) -> None:
    seeds = seeds_of(target, folder)
    trial = Trial(target, folder)
    trial.limit_memory()
    for seed in seeds:
        trial.try_one(seed)
    for _ in range(inputs):
        trial.try_one(mutated(choice.choice(seeds), choice, seeds))
