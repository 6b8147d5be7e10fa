"""Fuzzing without guidance: so many changed seeds, the same ones each time. It is quick."""

import faulthandler
import os
import random
import traceback
from pathlib import Path

from .mutations import mutated
from .target import FuzzTarget
from .trial import Trial


def run_plain(target: FuzzTarget, folder: Path, inputs: int, seed: int) -> int:
    """Try the seeds and then `inputs` changes of them, in a process of their own. Its status, as of `os.waitpid`."""
    child = os.fork()
    if child:
        return os.waitpid(child, 0)[1]
    faulthandler.disable()  # pytest has set it up to write to its own standard error
    with (folder / "errors").open("w", encoding="utf-8") as errors:
        os.dup2(errors.fileno(), 2)
        try:
            _try_all(target, folder, inputs, random.Random(seed))
        except BaseException:
            traceback.print_exc(file=errors)
            errors.flush()
            os._exit(1)
    os._exit(0)


def _try_all(target: FuzzTarget, folder: Path, inputs: int, choice: random.Random) -> None:
    seeds = seeds_of(target, folder)
    trial = Trial(target, folder)
    trial.limit_memory()
    for seed in seeds:
        trial.try_one(seed)
    for _ in range(inputs):
        trial.try_one(mutated(choice.choice(seeds), choice, seeds))


def seeds_of(target: FuzzTarget, folder: Path) -> list[bytes]:
    """The target's seeds. Each must be sound."""
    place = folder / "seeds"
    place.mkdir()
    return target.seeds(place)
