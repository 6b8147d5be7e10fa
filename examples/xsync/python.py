import json
import os
import shutil
import tempfile

for n in range(3):
    with tempfile.NamedTemporaryFile("w", dir=".", delete=False) as f:
        json.dump({"n": n}, f)
    os.replace(f.name, "state.json")
    print("state", n, flush=True)
shutil.copy("state.json", "copy.json")
print("copied", flush=True)
