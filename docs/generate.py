"""Writes the pages that come from the tool itself, so that none disagrees with what it says.

The reference pages come from the knowledge; the examples in the READMEs are what the commands print.

python docs/generate.py           write them
python docs/generate.py --check   exit with 1 if one is not up to date
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from llmedic.analysis.ledger import geometry
from llmedic.knowledge import (
    accelerators,
    causes,
    models,
    phrases,
    pitfalls,
    quantisations,
    schema,
    symptoms,
    vocabulary,
)
from llmedic.knowledge.texts import Lang, label, variable
from llmedic.model.deployment import ModelFacts
from llmedic.model.verdict import LAYERS

ROOT = Path(__file__).parent.parent
REFERENCE = ROOT / "docs" / "reference"
DEMO = "tests/bundles/long-context-surge.zip"
EXAMPLES = {
    "demo-output": ("diagnose", DEMO),
    "ledger-output": ("ledger", "Qwen3-8B", "--gpu", "L4", "--engine-version", "0.19.0"),
}
"""What the READMEs show: the mark behind a block, and the command that prints it."""
READMES: dict[Lang, str] = {"en": "README.md", "zh": "README.zh-CN.md"}
SUFFIX = {"en": "", "zh": ".zh-CN"}
TITLES = {
    "causes": ("Causes", "原因一览"),
    "observations": ("Observations", "观测项一览"),
    "symptoms": ("Symptoms and conditions", "症状与条件一览"),
    "pitfalls": ("The ten pitfalls of LLM production", "LLM 生产环境十大陷阱"),
    "accelerators": ("Accelerators", "加速卡一览"),
    "quantisations": ("Quantisation: what runs where", "量化：什么卡能跑什么"),
    "models": ("Models", "模型一览"),
}
GENERATED = (
    "Generated from the data files by `python docs/generate.py`; `llmedic explain ID` shows the same.",
    "由 `python docs/generate.py` 从数据文件生成；`llmedic explain ID --lang zh` 显示同样的内容。",
)
DATA = (
    "Generated from the data files by `python docs/generate.py`.",
    "由 `python docs/generate.py` 从数据文件生成。",
)
CARD_HEADS = (
    ("name", "memory, GiB", "bandwidth, GB/s", "fp16 / fp8 / fp4, TFLOPS", "capability", "links", "where from"),
    ("名称", "显存，GiB", "带宽，GB/s", "fp16 / fp8 / fp4，TFLOPS", "计算能力", "互联", "来源"),
)
CARD_WORDS = (
    "Memory is what a server sees, not what is on the box: the usual value, and the ends of what was seen over drivers,"
    " ECC and operating systems. \\* marks a card of which no server's log was found: its ends come from the sold size."
    " Peaks are dense; those of GeForce cards are with 32-bit accumulation.",
    "显存是服务器实际看到的容量，不是标称值：先写常见值，再写不同驱动、ECC 和操作系统下见过的两端。"
    "\\* 表示没有找到真实日志，两端由标称容量推算。峰值为稠密算力；GeForce 的峰值按 32 位累加计。",
)
MODEL_HEADS = (
    ("name and others with the same layout", "parameters, billions", "caches per layer", "positions", "where from"),
    ("名称，及结构相同的其他名称", "参数量，十亿", "各层缓存", "最大位置数", "来源"),
)
MODEL_WORDS = (
    "A model directory or a config.json that you give always wins over this table. Names are found in any case, with or"
    " without organisation; quantised copies and fine-tunes are found by the name they carry, and the answer says so."
    " Parameters are counted by transformers from the configuration, without draft heads; a dash: it has no class for"
    " the model. Caches: number of layers × KV heads × width of a head.",
    "给出的模型目录或 config.json 始终优先于本表。名称不分大小写，可省略组织名；量化版和微调版按其名字所含的模型匹配，"
    "结果会注明。参数量由 transformers 按配置计数，不含草稿头；短横表示 transformers 没有对应的类。"
    "缓存：层数 × KV 头数 × 头宽。",
)
CACHES = {
    "full": ("full", "全注意力"),
    "sliding": ("sliding window", "滑动窗口"),
    "chunked": ("chunked", "分块"),
    "mla": ("latent", "潜变量"),
    "state": ("state of fixed size", "固定大小的状态"),
}
RULE_HEADS = (
    ("engine", "releases", "device", "runs", "kernel"),
    ("引擎", "版本", "设备", "能否运行", "算子"),
)
RUNS = {
    "yes": ("yes", "能"),
    "no": ("no", "不能"),
    "weight-only": ("weights only: products run in 16 bit", "仅权重：乘法按 16 位计算"),
    "emulated": ("emulated: unpacked to 16 bit first", "模拟：先解包成 16 位"),
}


def pages() -> Iterator[tuple[Path, str]]:
    """Every generated page: where it belongs and its text."""
    bodies = {"causes": causes_page, "observations": observations_page, "symptoms": symptoms_page,
              "pitfalls": pitfalls_page, "accelerators": accelerators_page,
              "quantisations": quantisations_page, "models": models_page}  # fmt: skip
    for name, body in bodies.items():
        for lang in ("en", "zh"):
            at = lang == "zh"
            origin = DATA if name in ("accelerators", "quantisations", "models") else GENERATED
            blocks = [f"# {TITLES[name][at]}", origin[at], *body("zh" if at else "en")]
            yield REFERENCE / f"{name}{SUFFIX[lang]}.md", "\n\n".join(blocks) + "\n"
    if (ROOT / DEMO).exists():
        yield from ((ROOT / name, readme(name, lang)) for lang, name in READMES.items())


def readme(name: str, lang: Lang) -> str:
    """A README with its examples replaced by what the commands print now."""
    text = (ROOT / name).read_text(encoding="utf-8")
    for mark, words in EXAMPLES.items():
        command = [sys.executable, "-m", "llmedic", *words, "--lang", lang]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=60)
        if done.returncode not in (0, 1):
            raise SystemExit(f"{' '.join(command)}: {done.stderr}")
        text = _with_block(text, mark, done.stdout)
    return text


def _with_block(text: str, mark: str, printed: str) -> str:
    block = f"```text\n{printed}```\n<!-- /{mark} -->"
    return re.sub(rf"```text\n(?:(?!```).)*```\n<!-- /{mark} -->", lambda _: block, text, count=1, flags=re.DOTALL)


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


def accelerators_page(lang: Lang) -> Iterator[str]:
    """Every accelerator in one table."""
    at = lang == "zh"
    yield CARD_WORDS[at]
    yield table(CARD_HEADS[at], [_card(item, lang) for item in accelerators.accelerators().values()])


def _card(item: accelerators.Accelerator, lang: Lang) -> tuple[str, ...]:
    seen = item.memory_mib
    memory = f"{seen.likely / 1024:.2f} ({seen.low / 1024:.2f}–{seen.high / 1024:.2f})" + (
        "" if item.printed else " \\*"
    )
    peaks = " / ".join(
        f"{item.peak_tflops[one]:g}" if one in item.peak_tflops else "–" for one in ("fp16", "fp8", "fp4")
    )
    links = item.interconnect + (f", {item.link_gbs:g} GB/s" if item.link_gbs else "")
    sources = "; ".join(part for part in (item.memory_source, item.source, item.date) if part)
    name = f"{item.name}<br>{phrase(item.note, lang)}" if item.note else item.name
    capability = f"{item.capability:.1f}" if item.capability else item.arch
    return name, memory, f"{item.bandwidth_gbs:g}" if item.bandwidth_gbs else "–", peaks, capability, links, sources


def quantisations_page(lang: Lang) -> Iterator[str]:
    """Every method: what it is, and its rules in the order in which they are tried."""
    at = lang == "zh"
    for method in quantisations.methods().values():
        yield f"## {method.name}"
        others = ", ".join(f"`{alias}`" for alias in method.aliases)
        yield phrase(method.what, lang) + (f" ({others})" if others else "")
        yield table(RULE_HEADS[at], [_rule(rule, at=at) for rule in method.rules])
        yield f"{method.source}; {method.date}"


def _rule(rule: quantisations.Rule, *, at: bool) -> tuple[str, ...]:
    releases = f"{rule.since}–" if rule.since else ""
    releases += f"< {rule.removed}" if rule.removed else ""
    device = ", ".join(rule.arch) or (f"{rule.low:.1f}–{rule.high:.1f}" if rule.high else f"≥ {rule.low:.1f}")
    return rule.engine, releases, device, RUNS[rule.runs][at], rule.kernel


def models_page(lang: Lang) -> Iterator[str]:
    """Every catalogued model in one table, by name."""
    at = lang == "zh"
    yield MODEL_WORDS[at]
    records = sorted(models.records(), key=lambda record: record.name.lower())
    yield table(MODEL_HEADS[at], [_model(record, at=at) for record in records])


def _model(record: models.ModelRecord, *, at: bool) -> tuple[str, ...]:
    shape = geometry.of(ModelFacts(name=record.name, config=record.config))
    others = ", ".join(f"`{name}`" for name in (*record.aliases, *(variant.name for variant in record.variants)))
    name = f"`{record.name}`" + (f"<br>{others}" if others else "")
    kinds = Counter((layer.kind, layer.kv_heads, layer.head_dim or layer.latent_dim) for layer in shape.layers if layer)
    caches = "; ".join(f"{CACHES[kind][at]} {_cache(kind, count, *size)}" for (kind, *size), count in kinds.items())
    total = f"{record.parameters / 1e9:,.3f}" if record.parameters else "–"
    source = "; ".join(part for part in (record.source, record.notes, record.date) if part)
    return name, total, caches, f"{shape.positions:,}" if shape.positions else "–", source


def _cache(kind: str, count: int, heads: int, width: int) -> str:
    sizes = {"state": (count,), "mla": (count, width)}.get(kind, (count, heads, width))
    return " × ".join(str(size) for size in sizes)


def phrase(text: str, lang: Lang) -> str:
    """A sentence of the data in one language."""
    return phrases.chinese(text) if lang == "zh" else text


def say(text: schema.Text, lang: Lang) -> str:
    """Text in one language, safe in a table."""
    return (text.en if lang == "en" else text.zh).replace("|", "\\|")


def table(heads: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
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
