"""The budgets that keep the code readable, held by test. Who may import whom is import-linter's (pyproject.toml)."""

from __future__ import annotations

import ast
import os
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from llmedic.knowledge import load

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "llmedic"
MODULES = sorted(SOURCE.rglob("*.py"))

MAX_MODULE_LINES = 500
MAX_FUNCTION_LINES = 80

# Put together here, so that this file passes its own test.
PRIVATE_PATHS = (b"/" + b"work/", b"." + b"library")

# Folders made by tools; hidden ones are a tool's too, but for two.
UNPUBLISHED = {"build", "dist", "__pycache__"}
PUBLISHED_HIDDEN = {".ci", ".github"}


@pytest.fixture(params=MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def module(request: pytest.FixtureRequest) -> Path:
    path = request.param
    assert isinstance(path, Path)
    return path


def functions(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def size(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines from the `def` to the last one, docstring included, decorators not."""
    assert function.end_lineno is not None
    return function.end_lineno - function.lineno + 1


def is_published(folder: str) -> bool:
    return folder in PUBLISHED_HIDDEN or not (folder.startswith(".") or folder in UNPUBLISHED)


def published_files() -> Iterator[Path]:
    for folder, folders, files in os.walk(ROOT):
        folders[:] = [name for name in folders if is_published(name)]
        yield from (Path(folder, name) for name in files if name != ".git")


def contents(path: Path) -> Iterator[tuple[str, bytes]]:
    """The file's name and bytes, and those of the files in it if it is an archive."""
    name = str(path.relative_to(ROOT))
    yield name, path.read_bytes()
    if path.suffix in {".zip", ".whl"} and zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            yield from ((f"{name}:{member}", archive.read(member)) for member in archive.namelist())


def test_the_sources_are_found() -> None:
    assert "__init__.py" in {path.name for path in MODULES}


def test_a_module_fits_in_the_head(module: Path) -> None:
    assert len(module.read_text(encoding="utf-8").splitlines()) <= MAX_MODULE_LINES


def test_a_function_fits_on_a_screen(module: Path) -> None:
    tree = ast.parse(module.read_text(encoding="utf-8"))
    too_long = {function.name: size(function) for function in functions(tree) if size(function) > MAX_FUNCTION_LINES}

    assert {} == too_long


def test_a_module_says_why_it_exists(module: Path) -> None:
    tree = ast.parse(module.read_text(encoding="utf-8"))

    assert not tree.body or ast.get_docstring(tree), "needs a docstring"


def test_nothing_published_names_a_private_path() -> None:
    named = [
        (name, path.decode())
        for file in published_files()
        for name, content in contents(file)
        for path in PRIVATE_PATHS
        if path in content
    ]

    assert [] == named


def test_every_data_file_is_a_list_of_records_that_can_be_read_one_by_one() -> None:
    """`load.chunks` finds records by their first line: one that starts otherwise would be lost without a word."""
    data = SOURCE / "knowledge" / "data"
    files = [str(path.relative_to(data)) for path in sorted(data.rglob("*.yaml"))]

    found = {file: len(load.chunks(file)) for file in files}

    assert files
    assert {file: len(yaml.safe_load(load.text(file))) for file in files} == found
