"""The schema of a gate's file explains its settings and completes names, and other names are right too."""

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator as validator

from postcrash.harness.gate.schema import schema

PUBLISHED = Path(__file__).parents[4] / "docs" / "postcrash.schema.json"


def test_the_published_schema_is_that_of_the_file() -> None:
    assert PUBLISHED.read_text() == schema()
    assert json.loads(schema())["required"] == ["targets", "parts"]


def test_the_schema_explains_each_setting_and_completes_names() -> None:
    told = json.loads(schema())
    settings = [setting for each in (told, *told["$defs"].values()) for setting in each.get("properties", {}).items()]
    assert [name for name, setting in settings if not setting.get("description")] == []
    assert told["properties"]["targets"]["items"]["anyOf"] == [{"$ref": "#/$defs/targets"}, {"type": "string"}]
    assert {"all", "btrfs"} <= set(told["$defs"]["targets"]["enum"])
    validator(told).validate({"targets": ["own.toml"], "expect": "kernel:6.1", "parts": {"a": {"hunt": 1}}})


def test_the_schema_for_a_machine_completes_its_kernels() -> None:
    told = json.loads(schema(["uml-7.2.7"]))
    assert told["$defs"]["kernels"] == {"enum": ["uml-7.2.7"]}
    assert told["properties"]["kernels"]["items"]["anyOf"] == [{"$ref": "#/$defs/kernels"}, {"type": "string"}]
    validator(told).validate({"targets": ["xfs"], "kernels": ["6.1", "./linux"], "parts": {"a": {"hunt": 1}}})


def test_it_is_a_schema_and_says_of_what() -> None:
    told = json.loads(schema())
    validator.check_schema(told)
    assert (told["$schema"], told["title"]) == (validator.META_SCHEMA["$schema"], "postcrash gate")
    assert schema().endswith("}\n")


def references(value: object) -> set[str]:
    """Where the schema refers to."""
    inner: list[Any] = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    own = {value["$ref"]} if isinstance(value, dict) and "$ref" in value else set()
    return own.union(*map(references, inner))


@pytest.mark.parametrize("kernels", [[], ["6.1", "uml-7.2.7"]])
def test_each_list_of_names_is_referred_to_and_is_there(kernels: list[str]) -> None:
    """In the file and in its parts. A machine without a kernel has no names to complete."""
    told = json.loads(schema(kernels))
    lists = {name for name, each in told["$defs"].items() if "enum" in each}
    assert lists == {"targets", "models", "hold", "properties", "application", "expect"} | set(
        ["kernels"] * bool(kernels)
    )
    assert {f"#/$defs/{name}" for name in told["$defs"]} == references(told)
    assert all(each["enum"] for each in told["$defs"].values() if "enum" in each)


def test_each_name_that_is_completed_is_right() -> None:
    told = json.loads(schema())
    names = {name: each["enum"] for name, each in told["$defs"].items() if "enum" in each}
    whole = {"targets": names["targets"], "models": names["models"], "hold": names["hold"], "parts": {"a": {"hunt": 1}}}
    parts = {f"p{n}": {"application": name} for n, name in enumerate(names["application"])}
    parts |= {f"e{n}": {"properties": names["properties"], "expect": name} for n, name in enumerate(names["expect"])}
    for file in (whole, {"targets": ["xfs"], "parts": parts}):
        validator(told).validate(file)
