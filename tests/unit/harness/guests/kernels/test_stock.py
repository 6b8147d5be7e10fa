"""The stock of kernels: a kernel that was added is found again, and a file that is no kernel gives one clear error."""

import gzip
from pathlib import Path

import pytest

from postcrash.harness.errors import InfrastructureError, UsageError
from postcrash.harness.guests import engine
from postcrash.harness.guests.kernels.config import missing_options
from postcrash.harness.guests.kernels.debian import Suite
from postcrash.harness.guests.kernels.kernel import image_version
from postcrash.harness.guests.kernels.stock import KernelParts, Stock, choose_kernel, kernels_of, version_of


def image(path: Path, version: str = "6.99.1-test (me@here) #1 SMP") -> Path:
    """A file with the header of a bzImage."""
    header = bytearray(0x400)
    header[0x202:0x206] = b"HdrS"
    header[0x20E:0x210] = (0x100).to_bytes(2, "little")
    path.write_bytes(bytes(header[:0x300]) + version.encode() + b"\0")
    return path


def uml(path: Path, version: str = "6.98.0", body: bytes = b"") -> Path:
    """A program that answers as a user-mode Linux does."""
    path.write_bytes(f"#!/bin/sh\necho {version}\nexit\n".encode() + body)
    path.chmod(0o755)
    return path


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, on a machine with QEMU but without KVM and user-mode Linux."""
    monkeypatch.setattr(engine, "KVM_DEVICE", tmp_path / "no-kvm")
    monkeypatch.setenv("POSTCRASH_UML", str(tmp_path / "no-uml"))
    return tmp_path / "cache"


def test_kernels_are_kept_by_version(cache: Path, tmp_path: Path) -> None:
    stock = Stock(cache)
    assert stock.all() == []
    config = tmp_path / "config"
    config.write_text("CONFIG_VIRTIO_BLK=m\n")
    for name, version in [("b", "6.10.0"), ("a", "6.9.0"), ("c", "6.9.12-1")]:
        stock.add(name, KernelParts(image(tmp_path / "image", version), None, config, "here"))
    linux = uml(tmp_path / "linux", body=b"IKCFG_ST" + gzip.compress(b"CONFIG_XFS_FS=y\n") + b"IKCFG_ED")
    stock.add("uml", KernelParts(linux, None, None, "there"))
    assert [(k.name, k.version, k.engine) for k in stock.all()] == [
        ("a", "6.9.0", "qemu"),
        ("c", "6.9.12-1", "qemu"),
        ("b", "6.10.0", "qemu"),
        ("uml", "6.98.0", "uml"),
    ]
    assert [k.config() for k in stock.all()] == ["CONFIG_VIRTIO_BLK=m\n"] * 3 + ["CONFIG_XFS_FS=y\n"]
    assert not [path for path in (cache / "kernels").iterdir() if path.name.startswith(".")]


def test_what_is_no_kernel_is_not_added(cache: Path, tmp_path: Path) -> None:
    stock = Stock(cache)
    good, bad = image(tmp_path / "image"), tmp_path / "bad"
    bad.write_bytes(b"MZ")
    stock.add("taken", KernelParts(good, None, None, ""))
    for name, parts, reason in [
        ("taken", KernelParts(good, None, None, ""), "a kernel is called 'taken' already"),
        ("../x", KernelParts(good, None, None, ""), "a kernel cannot be called '../x'"),
        ("", KernelParts(good, None, None, ""), "a kernel cannot be called ''"),
        ("installed", KernelParts(good, None, None, ""), "a kernel cannot be called 'installed'"),
        ("x", KernelParts(bad, None, None, ""), "bad is neither a kernel image"),
        ("x", KernelParts(tmp_path / "none", None, None, ""), "none: No such file"),
    ]:
        with pytest.raises(UsageError, match=reason):
            stock.add(name, parts)
    with pytest.raises(InfrastructureError, match="was depmod run there"):
        stock.add("x", KernelParts(good, tmp_path, None, ""))
    assert [kernel.name for kernel in stock.all()] == ["taken"]


def test_a_kernel_takes_the_place_of_one_of_its_name_only_if_that_is_asked_for(cache: Path, tmp_path: Path) -> None:
    stock = Stock(cache)
    (config := tmp_path / "config").write_text("CONFIG_VIRTIO_BLK=m\n")
    stock.add("mine", KernelParts(uml(tmp_path / "linux", body=b"first"), None, config, "here"))
    second = KernelParts(uml(tmp_path / "linux", "6.99.0", b"second"), None, None, "there")
    with pytest.raises(UsageError, match="called 'mine' already: --replace puts the new one in its place, or choose"):
        stock.add("mine", second)
    with pytest.raises(UsageError, match="neither a kernel image"):
        stock.add("mine", KernelParts(config, None, None, ""), replaces=True)
    assert stock.all()[0].path.read_bytes().endswith(b"first")
    added = stock.add("mine", second, replaces=True)
    assert (added.version, added.path.read_bytes()[-6:], added.config()) == ("6.99.0", b"second", None)
    assert [path.name for path in (cache / "kernels").iterdir()] == ["mine"]


def test_a_kernel_in_use_stays_what_it_was_when_another_takes_its_place(cache: Path, tmp_path: Path) -> None:
    stock = Stock(cache)
    stock.add("mine", KernelParts(uml(tmp_path / "linux", body=b"first"), None, None, "here"))
    chosen = choose_kernel("auto", "mine", cache)
    stock.add("mine", KernelParts(uml(tmp_path / "linux", body=b"second"), None, None, "there"), replaces=True)
    assert chosen.path.read_bytes().endswith(b"first")
    assert choose_kernel("auto", "mine", cache).path.read_bytes().endswith(b"second")


def test_a_program_of_the_same_name_is_not_asked_for_the_version(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (elsewhere := tmp_path / "bin").mkdir()
    uml(elsewhere / "linux", "5.0.0")
    uml(tmp_path / "linux", "6.98.0")
    monkeypatch.setenv("PATH", f"{elsewhere}:/bin")
    monkeypatch.chdir(tmp_path)
    assert version_of(Path("linux")) == "6.98.0"


def test_a_kernel_that_is_removed_is_gone(cache: Path, tmp_path: Path) -> None:
    stock = Stock(cache)
    for name in ("mine", "other"):
        stock.add(name, KernelParts(uml(tmp_path / "linux"), None, None, "here"))
    (cache / "kernels/mine/kernel.json").write_text("damaged")
    stock.remove("mine")
    assert [kernel.name for kernel in stock.all()] == ["other"]
    assert [path.name for path in (cache / "kernels").iterdir()] == ["other"]
    for name in ("mine", "../kernels", "", "."):
        with pytest.raises(UsageError, match=r"no kernel is called .* \(postcrash kernels list: other\)"):
            stock.remove(name)


def test_of_the_modules_those_that_guests_may_need_are_kept(cache: Path, tmp_path: Path) -> None:
    needs = {"kernel/fs/fs.ko": "kernel/lib/lib.ko", "kernel/lib/lib.ko": ""}
    files = {**needs, "kernel/crypto/xts.ko": "", "kernel/sound/noise.ko": ""}
    for file in files:
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(file)
    (tmp_path / "modules.dep").write_text("".join(f"{file}: {needs}\n" for file, needs in files.items()))
    (tmp_path / "modules.softdep").touch()
    (tmp_path / "modules.alias").write_text("alias crypto-xts xts\n")
    added = Stock(cache).add("x", KernelParts(image(tmp_path / "image"), tmp_path, None, ""))
    assert added.modules is not None
    kept = {str(path.relative_to(added.modules)) for path in added.modules.rglob("*") if path.is_file()}
    assert kept == {*needs, "kernel/crypto/xts.ko", "modules.dep", "modules.softdep", "modules.alias"}


def test_a_damaged_stock_says_so(cache: Path, tmp_path: Path) -> None:
    added = Stock(cache).add("x", KernelParts(image(tmp_path / "image"), None, None, ""))
    (added.folder / "kernel.json").write_text("{}")
    with pytest.raises(InfrastructureError, match="is damaged: run  postcrash kernels remove x  and"):
        Stock(cache).all()


def test_the_engine_is_what_the_kernel_needs(cache: Path, tmp_path: Path) -> None:
    bz, linux = image(tmp_path / "image"), uml(tmp_path / "linux")
    Stock(cache).add("stocked", KernelParts(bz, None, None, ""))
    assert choose_kernel("auto", str(bz), cache).label == "QEMU/TCG 6.99.1-test"
    assert choose_kernel("qemu", "stocked", cache).label == "QEMU/TCG 6.99.1-test"
    assert choose_kernel("auto", str(linux), cache).label == "UML 6.98.0"
    for chosen, name, needed in [("uml", "stocked", "qemu"), ("qemu", str(linux), "uml")]:
        with pytest.raises(UsageError, match=f"--engine {chosen} cannot run {name}: it needs --engine {needed}"):
            choose_kernel(chosen, name, cache)
    with pytest.raises(UsageError, match=r"no kernel is called 'none', .* \(postcrash kernels list: stocked\)"):
        choose_kernel("auto", "none", cache)


def test_without_a_name_auto_takes_what_is_there(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InfrastructureError, match="run  apt-get install user-mode-linux"):
        choose_kernel("auto", None, cache)
    with pytest.raises(InfrastructureError, match="run  postcrash kernels fetch"):
        choose_kernel("qemu", None, cache)
    for name, version in [("new", "6.10.0"), ("old", "6.9.0")]:
        Stock(cache).add(name, KernelParts(image(tmp_path / "image", version), None, None, ""))
    assert choose_kernel("auto", None, cache).label == choose_kernel("qemu", None, cache).label == "QEMU/TCG 6.10.0"
    monkeypatch.delenv("POSTCRASH_UML")
    assert choose_kernel("auto", None, cache).label.startswith("UML 6.1.")


def test_a_version_stands_for_the_kernels_that_have_it(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = {"a": "6.9.1-x", "b": "6.9.12-x", "c": "6.90.0"}
    for name, version in made.items():
        Stock(cache).add(name, KernelParts(image(tmp_path / "image", version), None, None, ""))
    for name, version in [("old", "6.9.2"), ("new", "6.9.11")]:
        Stock(cache).add(name, KernelParts(uml(tmp_path / "linux", version), None, None, ""))

    def labels(engine: str, name: str) -> list[str]:
        return [kernel.label for kernel in kernels_of(engine, name, cache)]

    images = ["QEMU/TCG 6.9.12-x", "QEMU/TCG 6.9.1-x"]
    assert labels("auto", "6.9") == ["UML 6.9.11", "UML 6.9.2", *images]
    assert labels("uml", "6.9") == ["UML 6.9.11", "UML 6.9.2"]
    assert labels("qemu", "6.9") == images
    assert labels("auto", "6.9.1") == ["QEMU/TCG 6.9.1-x"]
    assert labels("auto", "b") == ["QEMU/TCG 6.9.12-x"]
    assert choose_kernel("auto", "6.9", cache).label == "UML 6.9.11"
    with pytest.raises(UsageError, match=r"no kernel of version 6\.8 is here .*: a, old, new, b, c\); Debian"):
        labels("auto", "6.8")
    with pytest.raises(UsageError, match=r"no kernel of version 6\.90 is here for --engine uml"):
        choose_kernel("uml", "6.90", cache)
    installed = uml(tmp_path / "installed", "6.9.3")
    monkeypatch.setenv("POSTCRASH_UML", str(installed))
    monkeypatch.setenv("POSTCRASH_UML_MODULES", str(tmp_path))
    (tmp_path / "6.9.3").mkdir()
    assert labels("auto", "6.9")[:2] == ["UML 6.9.3", "UML 6.9.11"]


def test_a_user_mode_linux_that_runs_here_needs_no_library(tmp_path: Path) -> None:
    parts = KernelParts(uml(tmp_path / "linux"), None, None, "there")
    assert Suite.__new__(Suite)._with_libraries(parts, tmp_path) == parts


def test_image_headers(tmp_path: Path) -> None:
    path = tmp_path / "image"
    for content in (b"", b"HdrS", b"\x7fELF" + bytes(0x400)):
        path.write_bytes(content)
        assert image_version(path) is None
    assert image_version(image(path)) == "6.99.1-test"
    assert image_version(image(path, "")) == "unknown"


def test_what_a_configuration_lacks() -> None:
    assert "CONFIG_VIRTIO_PCI" in missing_options("", "qemu")
    assert "CONFIG_VIRTIO_PCI" not in missing_options("CONFIG_VIRTIO_PCI=m\n", "qemu")
    assert "CONFIG_VIRTIO_PCI" in missing_options("# CONFIG_VIRTIO_PCI is not set\nCONFIG_VIRTIO_PCI_LIB=y", "qemu")
    everything = "".join(f"{option}=y\n" for option in missing_options("", "uml"))
    assert missing_options(everything, "uml") == []
    assert missing_options(everything.replace("HOSTFS=y", "HOSTFS=n"), "uml") == ["CONFIG_HOSTFS"]


def test_kvm_that_goes_nowhere_is_found_out_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "KVM_DEVICE", tmp_path)
    monkeypatch.setattr(engine, "_KVM_TIMEOUT_S", 0.5)
    qemu = tmp_path / "qemu"

    def why(script: str, cache: str) -> str | None:
        qemu.write_text(f"#!/bin/sh\n{script}\n")
        qemu.chmod(0o755)
        return engine.why_no_kvm(qemu, tmp_path / "kernel", tmp_path / cache)

    assert why("exec sleep 9", "a") == "a guest gets nowhere in 0.5 s"
    assert why("echo Kernel panic", "a") == "a guest gets nowhere in 0.5 s"
    assert why("echo MSR >&2; exit 1", "b") == "MSR"
    assert why("exit 3", "c") == "qemu-system-x86_64 ended with status 3"
    assert why("echo hello", "d") == "a guest ends before its kernel is up"
    assert why("echo Kernel panic - not syncing", "e") is None
    assert why("exit 3", "e") is None


def test_names_that_no_suite_can_have(tmp_path: Path) -> None:
    for name in ("", "Trixie", "trixie main\ndeb http://evil", "-o", "../x"):
        with pytest.raises(UsageError, match="no suite of Debian is called"):
            Suite(name, tmp_path)
    assert not list(tmp_path.iterdir())
