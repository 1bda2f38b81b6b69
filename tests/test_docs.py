"""The documents say what the tool does: generated pages are current, every command and option is documented."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import click
import pytest

from llmedic.cli import main

ROOT = Path(__file__).parent.parent
READMES = ("README.md", "README.zh-CN.md")
PAGES = sorted(path for path in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")) if path.name != "CHANGELOG.md")


@pytest.fixture(params=READMES)
def readme(request: pytest.FixtureRequest) -> str:
    return (ROOT / str(request.param)).read_text(encoding="utf-8")


def test_generated_pages_are_current() -> None:
    done = subprocess.run(
        [sys.executable, "docs/generate.py", "--check"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )

    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("command", main.COMMANDS)
def test_every_command_is_in_both_readmes(readme: str, command: str) -> None:
    assert f"llmedic {command}" in readme


@pytest.mark.parametrize("name", ["diagnose", "ledger"])
def test_every_option_is_in_the_guide_of_its_command(name: str) -> None:
    guide = (ROOT / "docs" / "guides" / f"{name}.md").read_text(encoding="utf-8")
    command = main.cli.get_command(click.Context(main.cli), name)

    assert command is not None
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            assert f"`{parameter.opts[-1]}" in guide, parameter.opts[-1]


def test_every_option_that_is_written_exists(readme: str) -> None:
    known = {"--help", "--version"}
    for name in main.COMMANDS:
        command = main.cli.get_command(click.Context(main.cli), name)
        assert command is not None
        known.update(option for parameter in command.params for option in parameter.opts)
    for line in re.findall(r"^\s*\$? ?llmedic .*$", readme, re.MULTILINE):
        used = {word for word in re.findall(r"(?<= )--[a-z-]+", line.partition("#")[0]) if '"' not in line}
        assert used <= known, line


@pytest.mark.parametrize("code", ["0", "1", "2", "3", "70", "130"])
def test_every_exit_code_is_in_both_readmes(readme: str, code: str) -> None:
    assert re.search(rf"^\| {code} \|", readme, re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", target):
            continue
        file, _, anchor = target.partition("#")
        there = (page.parent / file) if file else page
        assert there.exists(), target
        if anchor and f'id="{anchor}"' not in there.read_text(encoding="utf-8"):
            headings = re.findall(r"^#+ (.*)$", there.read_text(encoding="utf-8"), re.MULTILINE)
            slugs = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
            assert anchor in slugs, target
