"""Fuzzing with guidance: atheris (libFuzzer for Python) keeps the inputs that reach new code, and changes those.

`python -m tests.fuzz.guided NAME FOLDER SECONDS SEED` is one target's process. Rust code is not instrumented. So its
readers get what the mutations make of their seeds, guided by the Python code around them alone.
"""

import importlib
import random
import sys
from pathlib import Path

import atheris

from .mutations import BYTES_MAX, mutated
from .plain import seeds_of
from .trial import Trial

_OWN_PART = 0.6
"""The part of the changes that know the formats. The rest are libFuzzer's own."""


def main(name: str, folder: Path, seconds: int, seed: int) -> None:
    """Fuzz one target. libFuzzer ends the process and leaves its statistics on standard error."""
    with atheris.instrument_imports(include=["postcrash"]):
        target = importlib.import_module("tests.fuzz.table").ALL[name]
    seeds = seeds_of(target, folder)
    corpus = folder / "corpus"
    corpus.mkdir()
    for number, content in enumerate(seeds):
        (corpus / f"{number}").write_bytes(content)

    def change(data: bytes, size_max: int, number: int) -> bytes:
        choice = random.Random(number)
        if choice.random() < _OWN_PART:
            return mutated(data, choice, seeds)[:size_max]
        changed: bytes = atheris.Mutate(data, size_max)
        return changed

    trial = Trial(target, folder)
    options = [f"-max_total_time={seconds}", f"-seed={seed}", f"-max_len={BYTES_MAX}", "-rss_limit_mb=0"]
    arguments = [sys.argv[0], *options, "-print_final_stats=1", f"-artifact_prefix={folder}/", str(corpus)]
    atheris.Setup(arguments, trial.try_one, custom_mutator=change)
    trial.limit_memory()
    atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
