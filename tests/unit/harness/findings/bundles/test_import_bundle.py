"""A bundle is taken whole or not at all, and nothing in a store gives way to it."""

import gzip
import json
import os
import subprocess
import tarfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from postcrash.harness.errors import UsageError
from postcrash.harness.findings.bundles.archive import BundleError
from postcrash.harness.findings.bundles.import_bundle import finding_named, import_bundle
from postcrash.harness.findings.reproduce import reproducers_of
from postcrash.store.json_codec import Json
from postcrash.store.kernel_build import KernelBuild
from postcrash.store.records import Finding
from postcrash.store.store import NotInStoreError, Store

from ....conftest import places
from ....reports.conftest import observation
from .conftest import CONTENT, ORIGINAL, Here, Made, files_of, members_of, packed

EMPTY = ["verdicts.db"]


def changed(bundle: Path, name: str, change: Callable[[Json], object]) -> Path:
    """The bundle with another object in the member `name`."""
    members = members_of(bundle)
    value = json.loads(members[name])
    change(value)
    return packed(bundle, members | {name: json.dumps(value).encode()})


def with_bytes(bundle: Path, name: str, content: bytes | None) -> Path:
    """The bundle with other bytes in the member `name`, or without it."""
    members = members_of(bundle) | {name: content}
    return packed(bundle, {name: content for name, content in members.items() if content is not None})


def refused(path: Path, store: Store) -> str:
    """What is said of a bundle that is not taken. Nothing of it is in the store."""
    before = files_of(store), store.findings()
    with pytest.raises(BundleError) as caught:
        import_bundle(path, store)
    assert (files_of(store), store.findings()) == before
    text = str(caught.value)
    assert text.startswith(f"{path}: ")
    assert "\n" not in text
    return text.removeprefix(f"{path}: ")


def test_a_finding_comes_into_an_empty_store_with_its_files(bundle: Path, finding: Finding, store: Store) -> None:
    taken = import_bundle(bundle, store)
    assert replace(taken, explanation=None) == finding
    assert store.findings() == (taken,)
    assert files_of(store) == [f"bases/{finding.base}.img", f"recordings/{finding.recording}.pcr", "verdicts.db"]
    assert store.base_path(finding.base).read_bytes() == CONTENT
    assert store.base_path(finding.base).stat().st_blocks * 512 < len(CONTENT)


def test_it_is_taken_again_and_changes_nothing(bundle: Path, store: Store) -> None:
    linked = replace(import_bundle(bundle, store), minimal="f-0123456789abcdef")
    store.put_finding(linked)
    before = files_of(store)
    assert import_bundle(bundle, store) == linked == store.findings()[0]
    assert files_of(store) == before


def test_what_was_unpacked_and_packed_by_hand_is_taken(bundle: Path, store: Store, finding: Finding) -> None:
    assert import_bundle(packed(bundle, dict(reversed(members_of(bundle).items()))), store).id == finding.id


def test_the_explanation_is_made_here(bundle: Path, store: Store) -> None:
    def lie(told: Json) -> None:
        told["explanation"]["operations"] = []
        told["minimal"] = "f-0123456789abcdef"

    taken = import_bundle(changed(bundle, "finding.json", lie), store)
    assert taken.explanation is not None
    assert taken.explanation.operations
    assert taken.minimal is None


def test_a_finding_that_calls_the_same_kernel_otherwise_is_the_same(
    bundle: Path, store: Store, finding: Finding
) -> None:
    """Its id covers the guest's content."""
    store.put_finding(replace(finding, built=KernelBuild("0" * 64, "mine")))
    assert import_bundle(bundle, store).built == KernelBuild("0" * 64, "mine")


def test_another_finding_with_its_id_stays(bundle: Path, store: Store, finding: Finding) -> None:
    mine = replace(finding, torn=7)
    store.put_finding(mine)
    assert f"has {finding.id} from another run: choose another with --store" in refused(bundle, store)
    assert store.findings() == (mine,)


@pytest.mark.parametrize("name", ["manifest.json", "finding.json", "recording.pcr", "base.img"])
def test_nothing_may_be_missing(bundle: Path, store: Store, name: str) -> None:
    assert refused(with_bytes(bundle, name, None), store) == f"it is no bundle, or damaged: there is no {name}"
    assert files_of(store) == EMPTY


@pytest.mark.parametrize("name", ["manifest.json", "finding.json"])
@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is not JSON"),
        (b"{", "is not JSON"),
        (b"\xff{}", "is not JSON"),
        (b"[]", "is not a JSON object: []"),
        (b"[" * 1_000_000, "is not JSON"),
        (b'{"a": ' * 100_000, "is not JSON"),
        (b'{"a": %s}' % (b"9" * 1_000_000), "a number has too many digits"),
    ],
    ids=["empty", "cut", "not UTF-8", "array", "deep arrays", "deep objects", "digits"],
)
def test_what_is_no_json_object_is_refused(bundle: Path, store: Store, name: str, content: bytes, said: str) -> None:
    assert said in refused(with_bytes(bundle, name, content), store)


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("format", 2, "its format is 2, and this postcrash reads format 1"),
        ("format", None, "its format is None"),
        ("finding", "f-0123456789abcdef", "its manifest says finding = 'f-0123456789abcdef', found "),
        ("kernel", "UML 9", "its manifest says kernel = 'UML 9', found 'UML 6.1.176'"),
        ("base", {}, "its manifest says base = {}"),
        ("below", {}, "its manifest says below = {}, found None"),
        ("target", None, "its manifest says target = None"),
    ],
)
def test_a_manifest_that_lies_is_refused(bundle: Path, store: Store, field: str, value: object, said: str) -> None:
    assert said in refused(changed(bundle, "manifest.json", lambda told: told.update({field: value})), store)


def test_what_a_newer_postcrash_tells_besides_is_no_matter(bundle: Path, store: Store, finding: Finding) -> None:
    assert (
        import_bundle(changed(bundle, "manifest.json", lambda told: told.update({"mood": "good"})), store).id
        == finding.id
    )


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("id", "f-0123456789abcdef", "it is called 'f-0123456789abcdef', but its content is that of f-"),
        ("id", "../../x", "it is called '../../x', but"),
        ("id", 7, "finding.json: finding.id: expected text, found 7"),
        ("message", None, "finding.json: finding.message: expected text"),
        ("unknown", 1, "finding.json: finding: expected the fields"),
    ],
)
def test_a_finding_that_is_not_itself_is_refused(
    bundle: Path, store: Store, field: str, value: object, said: str
) -> None:
    assert said in refused(changed(bundle, "finding.json", lambda told: told.update({field: value})), store)


def test_content_with_another_digest_is_refused(bundle: Path, store: Store, made: Made) -> None:
    members = members_of(bundle)
    assert "the checksum does not match" in refused(
        with_bytes(bundle, "recording.pcr", members["recording.pcr"][:-1] + b"x"), store
    )
    other = made.parts(made.metadata(device="another")).recording.read_bytes()
    packed(bundle, members)
    assert "its recording is 'r-" in refused(with_bytes(bundle, "recording.pcr", other), store)
    packed(bundle, members)
    assert "its base is 'b-" in refused(with_bytes(bundle, "base.img", members["base.img"] + bytes(512)), store)


def test_what_is_in_the_store_under_an_id_stays(bundle: Path, store: Store, finding: Finding) -> None:
    """Files are named by their content: a bundle brings nothing under the name of something else."""
    import_bundle(bundle, store)
    paths = store.recording_path(finding.recording), store.base_path(finding.base)
    before = [(path.stat().st_ino, path.read_bytes()) for path in paths]
    members = members_of(bundle)
    for name in ("recording.pcr", "base.img"):
        refused(with_bytes(packed(bundle, members), name, members[name][:-512] + bytes(512) + b"x"), store)
    assert [(path.stat().st_ino, path.read_bytes()) for path in paths] == before


def test_another_content_with_the_same_id_stays(
    bundle: Path, store: Store, finding: Finding, made: Made, tmp_path: Path
) -> None:
    """Ids have only a part of a digest: whoever tries long enough has two contents with one id."""
    (image := tmp_path / "image").write_bytes(b"another")
    store.keep_base(image, finding.base)
    assert f"has another image that is called {finding.base}" in refused(bundle, store)
    store.base_path(finding.base).write_bytes(CONTENT)
    store.adopt_recording(made.parts(made.metadata(device="another")).recording, finding.recording)
    assert f"has another recording that is called {finding.recording}" in refused(bundle, store)


def test_a_bundle_cut_short_leaves_nothing(bundle: Path, store: Store) -> None:
    whole = bundle.read_bytes()
    for length in range(0, len(whole), 97):
        bundle.write_bytes(whole[:length])
        assert "cut short" in refused(bundle, store)
    assert files_of(store) == EMPTY


def test_links_in_a_bundle_are_refused_and_nothing_outside_is_touched(
    bundle: Path, store: Store, tmp_path: Path
) -> None:
    (target := tmp_path / "target").write_text("mine")
    with tarfile.open(bundle, "w:gz") as archive:
        link = tarfile.TarInfo("base.img")
        link.type, link.linkname = tarfile.SYMTYPE, str(target)
        archive.addfile(link)
    assert refused(bundle, store) == "it is no bundle, or damaged: base.img is not a regular file"
    assert target.read_text() == "mine"


def test_an_id_or_a_file(bundle: Path, finding: Finding, here: Here, tmp_path: Path, monkeypatch: Any) -> None:
    assert finding_named(here, finding.id) == finding
    there = Here(tmp_path / "there")
    assert finding_named(there, str(bundle)).id == finding.id
    monkeypatch.chdir(tmp_path)
    os.rename(bundle, "f-0123456789abcdef")
    with pytest.raises(NotInStoreError, match="there is no finding f-0123456789abcdef"):
        finding_named(there, "f-0123456789abcdef")
    with pytest.raises(NotInStoreError, match="no command has looked for findings here"):
        finding_named(here, "last")
    assert finding_named(there, "./f-0123456789abcdef").id == finding_named(there, "last").id == finding.id
    for name in ("nothing", "f-" + "0" * 5000):
        with pytest.raises(
            UsageError, match=rf"^expected a finding's id \(.*\), `last` or a bundle, found '{name[:70]}"
        ):
            finding_named(there, name)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8)
    | st.just("../../x"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)


def put(value: Any, place: tuple[Any, ...], new: object) -> Any:
    """The value with another one at `place`."""
    if not place:
        return new
    inner: Any = value
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = new
    return value


def result_of(path: Path, store: Store) -> str:
    """The id of the finding that was taken, or `refused`. Any other error is a fault."""
    try:
        return import_bundle(path, store).id
    except BundleError:
        return "refused"


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), name=st.sampled_from(["finding.json", "manifest.json"]))
def test_any_other_json_is_one_error_or_the_same_finding(
    bundle: Path, store: Store, finding: Finding, tmp_path: Path, data: st.DataObject, name: str
) -> None:
    members = members_of(bundle)
    value = json.loads(members[name])
    place = data.draw(st.sampled_from(places(value)))
    members[name] = json.dumps(put(value, place, data.draw(JSON))).encode(errors="surrogatepass")
    path = packed(tmp_path / "fuzzed", members)
    assert result_of(path, store) in (finding.id, "refused")


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_other_bytes_are_one_error_or_the_same_finding(
    bundle: Path, store: Store, finding: Finding, tmp_path: Path, data: st.DataObject
) -> None:
    content = bytearray(gzip.decompress(bundle.read_bytes()))
    header = data.draw(
        st.sampled_from([at for at in range(0, len(content), 512) if content[at + 257 : at + 262] == b"ustar"])
    )
    at = header + data.draw(st.integers(0, 2000))
    content[at : at + data.draw(st.integers(0, 40))] = data.draw(st.binary(max_size=40))
    path = tmp_path / "fuzzed"
    path.write_bytes(gzip.compress(bytes(content), 1))
    assert result_of(path, store) in (finding.id, "refused")


def test_a_stranger_s_observation_adds_no_command_to_the_script(made: Made, tmp_path: Path, store: Store) -> None:
    """bash would run a line of a comment that a line end has cut off, even without a disk."""
    mark = tmp_path / "mark"
    seen = observation([[0, 5000, "zero"]])
    seen["tree"][1]["xattrs"] = {"user.a": f"\ntouch {mark}\n#".encode().hex()}
    parts = made.parts(observation=seen)
    bundle = packed(
        tmp_path / "strange.tar.gz",
        {
            "manifest.json": json.dumps({"format": 1, **parts.facts()}).encode(),
            "finding.json": json.dumps(parts.finding.to_json()).encode(),
            "recording.pcr": parts.recording.read_bytes(),
            "base.img": CONTENT,
        },
    )
    (script,) = reproducers_of(import_bundle(bundle, store), ORIGINAL, store)[:1]
    assert f"touch {mark}" in script.text
    subprocess.run(["bash"], input=script.text, text=True, capture_output=True, check=False)
    assert not mark.exists()
