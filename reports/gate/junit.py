"""A gate's result as JUnit XML, which GitLab, Jenkins and others read.

A section is a test suite, an item a test case. Violated items are failures, undecided ones errors. Known and untested
ones are skipped. Fixed lines of the baseline are cases that pass.
"""

from collections import Counter
from collections.abc import Iterator
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from postcrash.model.text import INVOCATION, one_line
from postcrash.reports.gate.failure_text import fixed_line
from postcrash.reports.gate.sections import Item, Section, Status, sections
from postcrash.store.gate_run import GateRun, Part

_ELEMENTS: dict[Status, str] = {
    "violated": "failure",
    "undecided": "error",
    "known": "skipped",
    "untested": "skipped",
}
_COUNTS = {"failures": "failure", "errors": "error", "skipped": "skipped"}
_PLACE = ("target", "kernel", "model", "kind", "expect", "verdict")
_COVERED = ("workloads", "not_run", "states", "states_total", "instants", "recoveries", "remembered", "outcomes")


def junit(run: GateRun, invocation: str = INVOCATION) -> str:
    """The XML, with a line end. It is well-formed whatever the result's texts hold."""
    found = [*sections(run, invocation), *_fixed_lines(run)]
    root = Element("testsuites", name=one_line(f"postcrash gate {run.file}"), time=f"{run.seconds:.3f}")
    _count(root, [item for section in found for item in section.items])
    for section in found:
        root.append(_suite(section, run.started))
    indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{tostring(root, encoding="unicode")}\n'


def _fixed_lines(run: GateRun) -> Iterator[Section]:
    """Fixed lines as cases that pass: JUnit has no other place for results of the whole run."""
    if run.fixed:
        yield Section("baseline", tuple(Item(f"line {line.line}", "passed", fixed_line(line)) for line in run.fixed))


def _count(element: Element, items: list[Item]) -> None:
    counts = Counter(_ELEMENTS.get(item.status) for item in items)
    element.set("tests", str(len(items)))
    for attribute, name in _COUNTS.items():
        element.set(attribute, str(counts[name]))


def _suite(section: Section, started: str) -> Element:
    suite = Element("testsuite", name=section.title, timestamp=one_line(started).removesuffix("Z"))
    _count(suite, list(section.items))
    part = section.part
    if part is not None:
        suite.set("time", f"{part.seconds:.3f}")
        properties = SubElement(suite, "properties")
        for name in (*_PLACE, *_COVERED):
            SubElement(properties, "property", name=name, value=one_line(str(getattr(part, name))))
    suite.extend(_case(item, _class(part) if part else "gate") for item in section.items)
    if part is not None and part.notes:
        SubElement(suite, "system-out").text = "\n".join(map(one_line, part.notes))
    return suite


def _class(part: Part) -> str:
    """The part's key joined by dots, like the name of a class. Readers show its parts as folders."""
    return ".".join(one_line(word).replace(".", "_") for word in part.key)


def _case(item: Item, class_name: str) -> Element:
    element = Element("testcase", name=item.name, classname=class_name)
    if item.file:
        element.set("file", one_line(item.file))
    if item.status == "passed":
        SubElement(element, "system-out").text = item.reason
    else:
        result = SubElement(element, _ELEMENTS[item.status], type=item.status, message=item.reason)
        result.text = item.text
    return element
