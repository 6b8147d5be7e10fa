"""The files that Python needs for a script, as a JSON list. Run this with that Python:

    PYTHON python_modules.py [SCRIPT]

These are the modules that Python loads when it starts, and those that import statements of the script name, with what
these import in turn. Nothing of the script is run. What it imports in another way, by `importlib` or by `ctypes`, is
not among them. This runs on Python 3.7 and later, and imports nothing of ours.
"""

from __future__ import annotations

import json
import os
import sys
from modulefinder import ModuleFinder


def files_for(scripts: list[str]) -> list[str]:
    """The files, by their absolute paths. There is one script or none."""
    finder = ModuleFinder(sys.path[:])
    for script in scripts:
        finder.path[0] = os.path.dirname(os.path.abspath(script))
        finder.run_script(script)
    files = [getattr(module, "__file__", None) for module in (*sys.modules.values(), *finder.modules.values())]
    if sys.prefix != sys.base_prefix:
        files.append(os.path.join(sys.prefix, "pyvenv.cfg"))
    return sorted({os.path.abspath(file) for file in files if file and os.path.isfile(file)} - {__file__})


print(json.dumps(files_for(sys.argv[1:])))
