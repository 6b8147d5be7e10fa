"""SARIF 2.1.0, which GitHub's code scanning and editors read: what all logs have in common."""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from urllib.parse import quote

from postcrash.model.text import one_line
from postcrash.store.json_codec import Json

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"


def sarif_log(
    *,
    id: str,
    version: str,
    results: Sequence[Json],
    descriptions: Mapping[str, str],
    told: str,
    properties: Json | None = None,
) -> str:
    """A log of one run of postcrash, with a line end.

    id            what was run: runs with the same one follow each other
    descriptions  what each rule is about, in a few words
    told          what can be done about a result
    """
    driver = {"name": "postcrash", "version": one_line(version), "rules": list(_rules(results, descriptions, told))}
    run = {
        "tool": {"driver": driver},
        "automationDetails": {"id": f"{one_line(id)}/"},
        "columnKind": "unicodeCodePoints",
        "results": list(results),
        **({} if properties is None else {"properties": properties}),
    }
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2, ensure_ascii=False) + "\n"


def _rules(results: Sequence[Json], descriptions: Mapping[str, str], told: str) -> Iterator[Json]:
    for name in sorted({result["ruleId"] for result in results}):
        text = {"text": descriptions.get(name, f"The judge {name} of postcrash")}
        yield {"id": name, "shortDescription": text, "fullDescription": text, "help": {"text": told}}


def physical(file: str, line: int) -> Json:
    """A line of a file. Its path is absolute, or seen from the folder that the log's reader has."""
    scheme = "file://" if file.startswith("/") else ""
    return {"artifactLocation": {"uri": scheme + quote(file)}, "region": {"startLine": line}}


def logical(name: str, place: str) -> Json:
    """What is no place in a file: its name, and the whole place of it."""
    return {"name": one_line(name), "fullyQualifiedName": one_line(place)}


def fingerprints(*words: str) -> dict[str, str]:
    """`cause` is postcrash's own. GitHub compares the other one, whose form is a digest of a line with its number."""
    digest = hashlib.sha256(json.dumps(words).encode()).hexdigest()[:16]
    return {"cause": one_line(words[-1]), "primaryLocationLineHash": f"{digest}:1"}
