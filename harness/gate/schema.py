"""The JSON Schema of a gate's file, by which editors check the file, explain its settings and complete names."""

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
"""Names that each setting can have. Other values are valid, too: a file, or a name with parameters."""


def schema(kernels: Sequence[str] = ()) -> str:
    """The schema as JSON text. `kernels` are names of those that this machine has."""
    names = {name: list(values()) for name, values in _NAMES.items()} | ({"kernels": [*kernels]} if kernels else {})
    document = GateFile.model_json_schema()
    for section in (document, *document["$defs"].values()):
        for name, setting in section.get("properties", {}).items():
            for text in list(_text_schemas(setting)) if name in names else ():
                text["anyOf"] = [{"$ref": f"#/$defs/{name}"}, {"type": text.pop("type")}]
    document["$defs"] |= {name: {"enum": values} for name, values in names.items()}
    return json.dumps({**document, "$schema": _DIALECT, "$id": _ID, "title": "postcrash gate"}, indent=2) + "\n"


def _text_schemas(setting: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The schemas of the texts in a setting's schema. The setting is a text or a list of texts, and may be null."""
    if setting.get("type") == "string":
        yield setting
    for inner in (setting.get("items"), *setting.get("anyOf", ())):
        if inner:
            yield from _text_schemas(inner)
