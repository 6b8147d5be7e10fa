"""JUnit XML, as other programs read it."""

import re
from collections.abc import Callable
from typing import Any
from xml.etree import ElementTree

import junitparser
import pytest
from hypothesis import given
from hypothesis import strategies as st

from postcrash.reports.gate.failure_text import fixed_line
from postcrash.reports.gate.junit import junit
from postcrash.store.gate_run import Failure, GateRun, Part

MakeFailure = Callable[..., Failure]
MakePart = Callable[..., Part]
MakeRun = Callable[..., GateRun]


def read(run: GateRun) -> junitparser.JUnitXml:
    return junitparser.JUnitXml.fromstring(junit(run).encode())


def test_counts_are_those_of_the_cases(mixed: GateRun) -> None:
    read_back = read(mixed)
    said = [(suite.tests, suite.failures, suite.errors, suite.skipped) for suite in read_back]
    assert said == [(6, 1, 1, 2), (4, 1, 0, 1), (5, 0, 0, 2), (4, 0, 0, 1), (1, 0, 0, 0)]
    assert (read_back.tests, read_back.failures, read_back.errors, read_back.skipped) == (20, 2, 1, 6)
    for suite in read_back:
        suite.update_statistics()
    assert [(suite.tests, suite.failures, suite.errors, suite.skipped) for suite in read_back] == said


def test_a_suite_has_the_part_and_its_counts(mixed: GateRun) -> None:
    suite = next(iter(read(mixed)))
    assert suite.name == "hunt-small on ext4-current, UML 6.1.176"
    assert (suite.time, suite.timestamp) == (12.5, "2026-01-31T12:00:00")
    properties = {prop.name: prop.value for prop in suite.properties()}
    assert properties["states"] == str(2**70)
    assert (properties["recoveries"], properties["target"], properties["verdict"]) == (
        "120",
        "ext4-current",
        "violated",
    )
    assert {case.classname for case in suite} == {"hunt-small.ext4-current.UML 6_1_176.cache"}


def test_a_line_that_can_go_is_a_case_that_passes(mixed: GateRun) -> None:
    (case,) = list(read(mixed))[-1]
    (line,) = mixed.fixed
    assert (case.name, case.is_passed, case.system_out) == (f"line {line.line}", True, fixed_line(line))


def test_each_sort_of_case(mixed: GateRun) -> None:
    cases = {case.name: case for case in next(iter(read(mixed)))}
    assert cases["mounts"].is_passed
    assert cases["mounts"].system_out == "put to the test in 40 workloads"
    (failure,) = cases["P5 c-0000000000000001"].result
    assert isinstance(failure, junitparser.Failure)
    assert failure.message == "P5: PATH is N bytes long; of its bytes, N to N are zero"
    for words in (
        "rename B A",
        "lost: data of a file",
        "broken: auto-da-alloc",
        "explain f-0000000000000001",
        "repro f-",
    ):
        assert words in failure.text
    (error,) = cases["undecided c-0000000000000002"].result
    assert isinstance(error, junitparser.Error)
    (known,) = cases["P1 c-0000000000000003"].result
    assert isinstance(known, junitparser.Skipped) and known.message == "known: see bug 7"
    (untested,) = cases["link-counts"].result
    assert isinstance(untested, junitparser.Skipped) and untested.message == "never put to the test"


def test_the_file_of_a_workload_is_named(make_run: MakeRun, make_part: MakePart, make_failure: MakeFailure) -> None:
    run = make_run(make_part(verdict="violated", failures=(make_failure(file="corpus/a.ops"),)))
    assert [case.get("file") for case in ElementTree.fromstring(junit(run)).iter("testcase")][-1] == "corpus/a.ops"


def test_a_run_without_parts_is_an_error(make_run: MakeRun) -> None:
    assert read(make_run()).errors == 1


def test_texts_stay_texts(hostile: GateRun) -> None:
    root = ElementTree.fromstring(junit(hostile))
    assert {element.tag for element in root.iter()} == {
        *("testsuites", "testsuite", "properties", "property", "testcase", "failure", "error", "skipped", "system-out")
    }
    (failure,) = root.iter("failure")
    assert "<script>x</script> # SKIP\\r ::error::x%0A ]]> & \\x00\\x1b[2J \\uffff\\u202e" in failure.attrib["message"]


@given(st.text(st.characters(exclude_categories=()), max_size=20))
def test_any_text_makes_well_formed_xml(text: str) -> None:
    """Also text that no file could hold, such as half of a surrogate pair."""
    odd = Failure.model_construct(
        cause="c-0", verdict="violated", judge=text, message=text, standing=text, name=text, operations=text, file=text
    )
    place: dict[str, Any] = dict.fromkeys(("name", "target", "kernel", "model", "expect"), text)
    part = Part.model_construct(
        **place, kind="hunt", verdict="violated", failures=(odd,), notes=(text,), tested={text: 1}
    )
    run = GateRun.model_construct(version=text, started=text, seconds=1.0, file=text, parts=(part,))
    written = junit(run)
    assert not re.search("[^\\t\\n\\x20-\\ud7ff\\ue000-\\ufffd\\U00010000-\\U0010ffff]", written)
    (suite,) = ElementTree.fromstring(written.encode())
    assert len(suite.findall("testcase")) == len(ElementTree.fromstring(written).findall("*/testcase")) > 0


@pytest.mark.parametrize("which", ["mixed", "hostile"])
def test_no_two_cases_of_a_suite_have_one_name(which: str, request: pytest.FixtureRequest) -> None:
    for suite in read(request.getfixturevalue(which)):
        names = [case.name for case in suite]
        assert len(set(names)) == len(names)
