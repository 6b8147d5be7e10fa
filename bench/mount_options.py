"""Try every mount option and feature of mkfs on some kernels, and write docs/results/mount-options.md.

python bench/mount_options.py --kernel 6.1,7.2 --out docs/results/mount-options.md
"""

import argparse
import tempfile
from pathlib import Path

from listed_options import TriedOption, listed_options
from option_trials import OptionTrial, all_options, page, tried
from postcrash.harness.examination.session import settings_for
from postcrash.harness.files.places import cache_folder
from postcrash.harness.guests.guest_root import guest_root
from postcrash.harness.guests.kernels.kernel import Kernel
from postcrash.harness.guests.kernels.stock import choose_kernel
from postcrash.harness.guests.machine import Machine


def trials(kernel: Kernel, options: list[TriedOption]) -> list[OptionTrial]:
    """Each option on `kernel`."""
    settings = settings_for(kernel, guest_root(kernel, cache_folder()))
    found = []
    with tempfile.TemporaryDirectory() as bases, Machine(settings) as machine:
        for option in options:
            found.append(tried(machine, kernel, option, Path(bases)))
            print(f"{kernel.label}: {option.fstype}: {option.label}: {found[-1].result}", flush=True)
    return found


def main() -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kernel", default="6.1,7.2", help="names of `postcrash kernels list`, or versions")
    parser.add_argument("--only", default="", help="options whose label has this text; nothing is written")
    parser.add_argument("--out", type=Path, default=Path("docs/results/mount-options.md"))
    chosen = parser.parse_args()
    listed = listed_options()
    options = [option for option in all_options(listed) if chosen.only in f"{option.fstype} {option.label}"]
    kernels = [choose_kernel("auto", name, cache_folder()) for name in chosen.kernel.split(",")]
    found = [trials(kernel, options) for kernel in kernels]
    if not chosen.only:
        chosen.out.write_text(page([kernel.label for kernel in kernels], listed, found) + "\n")


if __name__ == "__main__":
    main()
