"""Folders, as a crash leaves them, made by hand."""

import io
import tarfile
from collections.abc import Callable

import pytest

from postcrash.apps import Folder


@pytest.fixture
def folder() -> Callable[..., Folder]:
    """Makes a folder with files of these names and contents."""

    def make(**files: bytes) -> Folder:
        made = io.BytesIO()
        with tarfile.open(fileobj=made, mode="w") as archive:
            for name, content in files.items():
                info = tarfile.TarInfo(name)
                info.size = len(content)
                archive.addfile(info, io.BytesIO(content))
        return Folder(made.getvalue())

    return make
