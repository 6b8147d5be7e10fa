"""Tests checks with damaged folders. A check that accepts all of them cannot fail."""

import io
import tarfile
from collections.abc import Callable, Iterator

from postcrash.apps import Folder, SandboxError
from postcrash.harness.auditing.folder_judge import FolderJudge
from postcrash.model import Entry, Tree
from postcrash.model.tree import ROOT_PATH

_OTHER_BYTES = bytes(range(255, -1, -1))
"""A table for `bytes.translate` that changes every byte."""


def why_untested(judge: FolderJudge) -> str:
    """Why a check that objected to nothing was not put to the test. Empty if it objects to a folder that is damaged.

    Each of these folders is judged as if everything had been acknowledged that was acknowledged at the end.
    """
    if judge.latest is None:
        return "the check was asked about no folder"
    accepted = []
    for words, folder in _canaries(judge):
        if not _passes(judge, folder, judge.latest.acknowledged):
            return ""
        accepted.append(words)
    return f"the check cannot fail: it also accepts {', '.join(accepted)}"


def _canaries(judge: FolderJudge) -> Iterator[tuple[str, Folder]]:
    assert judge.earliest is not None and judge.latest is not None
    whole = judge.latest.folder
    yield "an empty folder", Folder.of(Tree([Entry(ROOT_PATH, "dir")]))
    yield "empty files", _with_contents(whole, lambda _: b"")
    yield "files of other bytes", _with_contents(whole, lambda content: content.translate(_OTHER_BYTES))
    if judge.earliest.folder != whole:
        yield "the folder as it was at the start", judge.earliest.folder


def _passes(judge: FolderJudge, folder: Folder, acknowledged: tuple[str, ...]) -> bool:
    try:
        return judge.ask(folder, acknowledged).status == 0
    except SandboxError:
        return False


def _with_contents(folder: Folder, changed: Callable[[bytes], bytes]) -> Folder:
    made = io.BytesIO()
    with (
        tarfile.open(fileobj=io.BytesIO(folder.archive)) as old,
        tarfile.open(fileobj=made, mode="w", format=tarfile.GNU_FORMAT, encoding="utf-8") as new,
    ):
        for member in old:
            file = old.extractfile(member) if member.isreg() else None
            content = b"" if file is None else changed(file.read())
            member.size = len(content)
            new.addfile(member, io.BytesIO(content))
    return Folder(made.getvalue())
