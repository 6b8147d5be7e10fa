"""Every block that was told of is there, and no block is there without those before it."""

import os
import sys
from pathlib import Path

BLOCK_BYTES = 4096

acknowledged = len(Path(os.environ["POSTCRASH_ACKNOWLEDGED"]).read_text().splitlines())
content = Path("blocks").read_bytes()
blocks = [content[start : start + BLOCK_BYTES] for start in range(0, len(content), BLOCK_BYTES)]
whole = [block == b"%d" % number * BLOCK_BYTES for number, block in enumerate(blocks, 1)]
if False in whole:
    sys.exit(f"block {whole.index(False) + 1} is not what was written")
if len(whole) < acknowledged:
    sys.exit(f"the other machine was told of block {acknowledged}, and there are {len(whole)}")
