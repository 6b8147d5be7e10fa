"""What is told of a kernel's build."""

from dataclasses import replace

from postcrash.store.kernel_build import KernelBuild


def test_one_line_tells_all_that_is_known() -> None:
    build = KernelBuild("1a2b3c4d5e6f" + "0" * 52)
    assert (build.short, build.brief, build.description) == ("sha256:1a2b3c4d5e6f",) * 3
    whole = replace(build, name="mine", build_id="b5", commit="c0", configuration="f" * 64)
    assert whole.brief == "mine, sha256:1a2b3c4d5e6f"
    assert whole.description == "mine, build id b5, commit c0, configuration sha256:ffffffffffff, sha256:1a2b3c4d5e6f"
