"""Fuzzing with guidance: atheris (libFuzzer for Python) keeps the inputs that reach new code, and changes those.

Rust code is not instrumented. So its readers get what the mutations make of their seeds, guided by the Python code
around them alone.
"""

import io
import random
import re
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr
from pathlib import Path

import atheris

from .child import seeds_of, start
from .mutations import BYTES_MAX, mutated
from .target import FuzzTarget
from .trial import Trial

_OWN_PART = 0.6
"""The part of the changes that know the formats. The rest are libFuzzer's own."""
_EXECUTED = re.compile(r"stat::number_of_executed_units: +([0-9]+)")
_CORPUS = re.compile(r" cov: ([0-9]+) .* corp: ([0-9]+)/")


@contextmanager
def instrumented() -> Iterator[None]:
    """Modules of postcrash that are imported within it tell which code an input reaches."""
    with redirect_stderr(io.StringIO()), atheris.instrument_imports(include=["postcrash"]):
        yield


def run_guided(target: FuzzTarget, folder: Path, seconds: int, seed: int) -> int:
    """Fuzz the target in a process of its own. Its status, as of `os.waitpid`."""
    return start(folder, lambda: _fuzz(target, folder, seconds, seed))


def statistics(folder: Path) -> tuple[int, str]:
    """How many inputs were tried, and what else libFuzzer says of its run."""
    log = (folder / "errors").read_text(encoding="utf-8", errors="replace")
    executed, corpus = _EXECUTED.findall(log), _CORPUS.findall(log)
    told = f", {corpus[-1][0]} places reached, {corpus[-1][1]} inputs kept" if corpus else ""
    return int(executed[-1]) if executed else 0, told


def _fuzz(target: FuzzTarget, folder: Path, seconds: int, seed: int) -> None:
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
    arguments = [target.name, *options, "-print_final_stats=1", f"-artifact_prefix={folder}/", str(corpus)]
    atheris.Setup(arguments, trial.try_one, custom_mutator=change)
    trial.limit_memory()
    atheris.Fuzz()
