"""Replaces `settings` as atomic-write packages do, with those calls of fsync that the argument names."""

import os
import sys

synced = sys.argv[1].split("+")
temporary = os.open("settings.tmp", os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644)
os.write(temporary, b"the new content\n")
if "file" in synced:
    os.fsync(temporary)
os.close(temporary)
os.replace("settings.tmp", "settings")
if "folder" in synced:
    folder = os.open(".", os.O_RDONLY | os.O_DIRECTORY)
    os.fsync(folder)
print("replaced", flush=True)
