"""The JSON Schema of a gate's file, from which editors check it, explain its settings and complete names."""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from postcrash._core import device_models
from postcrash.harness.expectations.expectation import DOCUMENTS, PRACTISED
from postcrash.harness.gate.configuration import GateFile
from postcrash.harness.gate.names import application_names, property_names, target_names

SCHEMA_FILE = "postcrash.schema.json"
_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_ID = "urn:postcrash:gate"

_NAMES: dict[str, Callable[[], Iterable[str]]] = {
    "targets": target_names,
    "models": device_models,
    "hold": property_names,
    "properties": property_names,
    "application": application_names,
    "expect": lambda: (DOCUMENTS, PRACTISED),
}
"""For each setting, names that it can have. Others can be right too: a file, or a name with values."""


def schema(kernels: Sequence[str] = ()) -> str:
    """The schema as JSON text. `kernels` are names of those that this machine has."""
    known = _NAMES | ({"kernels": lambda: kernels} if kernels else {})
    made = GateFile.model_json_schema()
    for section in (made, *made["$defs"].values()):
        for name, setting in section.get("properties", {}).items():
            for text in list(_texts(setting)) if name in known else ():
                text["anyOf"] = [{"$ref": f"#/$defs/{name}"}, {"type": text.pop("type")}]
    made["$defs"] |= {name: {"enum": [*names()]} for name, names in known.items()}
    return json.dumps({**made, "$schema": _DIALECT, "$id": _ID, "title": "postcrash gate"}, indent=2) + "\n"


def _texts(setting: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The schemas of the texts in a setting's schema. The setting is a text or a list of texts, and may be nothing."""
    if setting.get("type") == "string":
        yield setting
    for inner in (setting.get("items"), *setting.get("anyOf", ())):
        if inner:
            yield from _texts(inner)
