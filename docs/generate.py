"""Writes the pages that come from the tool itself, so that none disagrees with what it says.

The reference pages come from the knowledge; the example in the READMEs is what the tool prints about the demo bundle.

python docs/generate.py           write them
python docs/generate.py --check   exit with 1 if one is not up to date
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from llmedic.knowledge import causes, pitfalls, schema, symptoms, vocabulary
from llmedic.knowledge.texts import Lang, label, variable
from llmedic.model.verdict import LAYERS

ROOT = Path(__file__).parent.parent
REFERENCE = ROOT / "docs" / "reference"
DEMO = "tests/bundles/long-context-surge.zip"
READMES: dict[Lang, str] = {"en": "README.md", "zh": "README.zh-CN.md"}
SUFFIX = {"en": "", "zh": ".zh-CN"}
TITLES = {
    "causes": ("Causes", "原因一览"),
    "observations": ("Observations", "观测项一览"),
    "symptoms": ("Symptoms and conditions", "症状与条件一览"),
    "pitfalls": ("The ten pitfalls of LLM production", "LLM 生产环境十大陷阱"),
}
GENERATED = (
    "Generated from the data files by `python docs/generate.py`; `llmedic explain ID` shows the same.",
    "由 `python docs/generate.py` 从数据文件生成；`llmedic explain ID --lang zh` 显示同样的内容。",
)


def pages() -> Iterator[tuple[Path, str]]:
    """Every generated page: where it belongs and its text."""
    bodies = {"causes": causes_page, "observations": observations_page, "symptoms": symptoms_page,
              "pitfalls": pitfalls_page}  # fmt: skip
    for name, body in bodies.items():
        for lang in ("en", "zh"):
            at = lang == "zh"
            blocks = [f"# {TITLES[name][at]}", GENERATED[at], *body("zh" if at else "en")]
            yield REFERENCE / f"{name}{SUFFIX[lang]}.md", "\n\n".join(blocks) + "\n"
    if (ROOT / DEMO).exists():
        yield from ((ROOT / name, readme(name, lang)) for lang, name in READMES.items())


def readme(name: str, lang: Lang) -> str:
    """A README with its example replaced by what the command prints now."""
    command = [sys.executable, "-m", "llmedic", "diagnose", DEMO, "--lang", lang]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=60)
    if done.returncode not in (0, 1):
        raise SystemExit(f"{' '.join(command)}: {done.stderr}")
    block = f"```text\n{done.stdout}```\n<!-- /demo-output -->"
    text = (ROOT / name).read_text(encoding="utf-8")
    return re.sub(r"```text\n(?:(?!```).)*```\n<!-- /demo-output -->", lambda _: block, text, count=1, flags=re.DOTALL)


def causes_page(lang: Lang) -> Iterator[str]:
    """All causes by layer, in the order in which layers are walked."""
    for layer in LAYERS:
        yield f"## {label(f'layer.{layer}', lang)}"
        for cause in causes.causes().values():
            if cause.layer == layer:
                yield from _cause(cause, lang)


def _cause(cause: schema.CauseText, lang: Lang) -> Iterator[str]:
    yield f'### <a id="{cause.id}"></a>{say(cause.title, lang)}'
    yield f"`{cause.id}` · {label(f'severity.{cause.severity}', lang).lower()}"
    yield say(cause.what, lang)
    lines = [
        _item("explain.decided_by", say(cause.decided_by, lang), lang),
        _item("explain.remedy", say(cause.remedy, lang), lang),
        _item(
            "change",
            f"{variable(cause.change.variable, lang)}; {label('expected', lang)}: {say(cause.change.expected, lang)}",
            lang,
        ),
        _item("verify", f"`{cause.change.verify}`", lang),
    ]
    if cause.explains:
        lines.append(_item("explain.explains", ", ".join(f"[`{name}`](#{name})" for name in cause.explains), lang))
    yield "\n".join(lines)


def observations_page(lang: Lang) -> Iterator[str]:
    """The vocabulary as one table."""
    rows = [(f"`{word.name}`", word.unit, say(word.meaning, lang)) for word in vocabulary.words().values()]
    yield table((label("observation", lang), label("explain.unit", lang), label("explain.meaning", lang)), rows)


def symptoms_page(lang: Lang) -> Iterator[str]:
    """What can be ticked, in two tables."""
    for kind in ("symptom", "condition"):
        heading = label(f"explain.{kind}", lang)
        yield f"## {heading}"
        rows = [(f"`{entry.id}`", say(entry.text, lang)) for entry in symptoms.entries().values() if entry.kind == kind]
        yield table(("id", heading), rows)


def pitfalls_page(lang: Lang) -> Iterator[str]:
    """The ten pitfalls, one section each."""
    causes_file = f"causes{SUFFIX[lang]}.md"
    for number, pitfall in enumerate(pitfalls.pitfalls().values(), 1):
        yield f'## <a id="{pitfall.id}"></a>{number}. {say(pitfall.title, lang)}'
        yield f"`{pitfall.id}`"
        lines = [
            _item("explain.symptom-text", say(pitfall.symptom, lang), lang),
            _item("explain.green", say(pitfall.green, lang), lang),
            _item("explain.evidence", say(pitfall.evidence, lang), lang),
            _item("explain.remedy", say(pitfall.remedy, lang), lang),
        ]
        if pitfall.causes:
            links = ", ".join(f"[`{name}`]({causes_file}#{name})" for name in pitfall.causes)
            lines.append(_item("explain.causes", links, lang))
        yield "\n".join(lines)


def say(text: schema.Text, lang: Lang) -> str:
    """Text in one language, safe in a table."""
    return (text.en if lang == "en" else text.zh).replace("|", "\\|")


def table(heads: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """A Markdown table."""
    lines = [" | ".join(heads), " | ".join("---" for _ in heads), *(" | ".join(row) for row in rows)]
    return "\n".join(f"| {line} |" for line in lines)


def _item(key: str, words: str, lang: Lang) -> str:
    return f"- **{label(key, lang)}**: {words}"


def main(arguments: list[str]) -> int:
    """Write the pages, or with --check say which are not up to date."""
    stale = [path for path, text in pages() if not path.exists() or path.read_text(encoding="utf-8") != text]
    if arguments == ["--check"]:
        for path in stale:
            print(f"error: {path.name} is not up to date", file=sys.stderr)
        return 1 if stale else 0
    for path, text in pages():
        path.write_text(text, encoding="utf-8")
    print(f"{len(stale)} pages written anew")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
