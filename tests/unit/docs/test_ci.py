"""docs/ci/ has files that GitHub and GitLab take, by the schemas that check-jsonschema carries."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest

from postcrash.harness.cli.main import cli

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[3]
DOCS = ROOT / "docs"
SCHEMAS = {
    "github.yml": ["--builtin-schema", "vendor.github-workflows"],
    "gitlab.yml": ["--builtin-schema", "vendor.gitlab-ci", "--data-transform", "gitlab-ci"],
}


def check_schema(file: Path, schema: list[str]) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "check_jsonschema", *schema, str(file)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("name", SCHEMAS)
def test_the_file_follows_the_schema(name: str) -> None:
    done = check_schema(DOCS / "ci" / name, SCHEMAS[name])
    assert done.returncode == 0, done.stdout


def test_our_own_workflow_follows_the_schema() -> None:
    done = check_schema(ROOT / ".github/workflows/ci.yml", SCHEMAS["github.yml"])
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(("name", "word"), [("github.yml", "runs-on:"), ("gitlab.yml", "parallel:")])
def test_the_schema_would_notice(name: str, word: str, tmp_path: Path) -> None:
    changed = tmp_path / name
    changed.write_text((DOCS / "ci" / name).read_text().replace(word, "oddly-" + word))
    assert "oddly-" in check_schema(changed, SCHEMAS[name]).stdout


def test_the_page_has_every_file() -> None:
    page = (DOCS / "ci.md").read_text()
    assert {path.name for path in (DOCS / "ci").iterdir()} == set(SCHEMAS)
    assert all(f"(ci/{name})" in page for name in SCHEMAS)


@pytest.mark.parametrize("name", SCHEMAS)
@pytest.mark.parametrize("command", ["gate", "merge"])
def test_the_commands_have_the_options(name: str, command: str) -> None:
    text = re.sub(r"\$\{\{.*?\}\}", "1", (DOCS / "ci" / name).read_text())
    (line,) = re.findall(rf"bin/postcrash {command} ((?:.*\n)*?.*--json \S+.*)", text)
    found = cli.get_command(click.Context(cli), command)
    assert found is not None
    known = {option for param in found.params for option in param.opts}
    used = {word for word in shlex.split(line) if word.startswith("--")}
    assert used and used <= known
