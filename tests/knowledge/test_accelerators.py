"""The accelerators are consistent, are found by the words that people and drivers use, and hold what servers print."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmedic.knowledge import accelerators

ALL = tuple(accelerators.accelerators().values())
GIB = 2**30


@pytest.mark.parametrize("item", ALL, ids=lambda item: item.name)
def test_record_is_consistent(item: accelerators.Accelerator) -> None:
    if not item.unified:
        assert 0.84 < item.memory.likely / 2**30 / item.nominal_gb <= 1.0
    assert item.memory.low <= item.memory.likely <= item.memory.high
    assert all((item.memory_source, item.date, item.interconnect))
    assert item.per_node >= 1
    assert (item.capability is not None) == (item.vendor == "nvidia")
    assert item.capability is None or item.arch == f"sm_{item.capability * 10:g}"
    peaks = item.peak_tflops
    assert not peaks or item.source
    assert peaks.get("fp8", 9e9) >= peaks.get("bf16", 0)
    assert peaks.get("fp4", 9e9) >= peaks.get("fp8", 0)


def test_at_least_sixty_and_every_maker() -> None:
    assert len(ALL) >= 60
    assert {item.vendor for item in ALL} == {"nvidia", "amd", "intel", "huawei", "google", "apple"}
    assert sum(item.printed for item in ALL) >= 50


def test_every_word_means_one_accelerator() -> None:
    for item in ALL:
        for word in (item.name, *item.aliases):
            found = accelerators.find(word)
            assert getattr(found, "name", None) == item.name, word


@pytest.mark.parametrize(
    ("word", "name"),
    [
        ("h100", "NVIDIA H100 80GB HBM3"),
        ("H100-80GB", "NVIDIA H100 80GB HBM3"),
        ("NVIDIA-H100-80GB-HBM3", "NVIDIA H100 80GB HBM3"),
        ("nvidia-h100-80gb", "NVIDIA H100 80GB HBM3"),
        ("p5.48xlarge", "NVIDIA H100 80GB HBM3"),
        ("a100-40g", "NVIDIA A100-SXM4-40GB"),
        ("NVIDIA-A100-SXM4-80GB", "NVIDIA A100-SXM4-80GB"),
        ("NVIDIA-L4-SHARED", "NVIDIA L4"),
        ("L40", "NVIDIA L40"),
        ("L40S 46GB", "NVIDIA L40S"),
        ("Tesla T4 16GB", "Tesla T4"),
        ("RTX 3090 24GB", "NVIDIA GeForce RTX 3090"),
        ("RTX 3080 12GB", "NVIDIA GeForce RTX 3080 12GB"),
        ("GB10 (sm_121a)", "NVIDIA GB10"),
        ("l40s", "NVIDIA L40S"),
        ("GeForce RTX 4090", "NVIDIA GeForce RTX 4090"),
        ("4090D", "NVIDIA GeForce RTX 4090 D"),
        ("nvidia-tesla-t4", "Tesla T4"),
        ("rx 7900 xtx", "AMD Radeon RX 7900 XTX"),
        ("DGX Spark", "NVIDIA GB10"),
        ("AMD Instinct MI300X", "AMD Instinct MI300X"),
    ],
)
def test_found_as_it_is_written(word: str, name: str) -> None:
    found = accelerators.find(word)
    assert found is not None
    assert found.name == name


@pytest.mark.parametrize(
    "word", ["", "gpu", "RTX 3080 Super", "L40S 80GB", "NVIDIA-A100-SXM4-80GB-MIG-1g.10gb", "24GB"]
)
def test_what_is_no_known_card_is_not_found(word: str) -> None:
    assert accelerators.find(word) is None
    assert accelerators.matches(word) == ()


def test_a_word_for_several_gives_the_commonest_first() -> None:
    assert [item.name for item in accelerators.matches("a100")] == [
        "NVIDIA A100-SXM4-80GB", "NVIDIA A100-SXM4-40GB", "NVIDIA A100-PCIE-40GB", "NVIDIA A100 80GB PCIe",
    ]  # fmt: skip
    assert [item.name for item in accelerators.matches("l4")] == ["NVIDIA L4"]
    assert [item.name for item in accelerators.matches("h20")] == ["NVIDIA H20", "NVIDIA H20-3e"]


def test_suggestions_for_an_unknown_word() -> None:
    assert "NVIDIA GeForce RTX 4080 SUPER" in accelerators.suggest("RTX 3080 Super")
    assert accelerators.suggest("NVIDIA-A100-SXM4-80GB-MIG-1g.10gb")[0] == "NVIDIA A100-SXM4-80GB"
    assert accelerators.suggest("qqqq") == ()


@pytest.mark.parametrize(
    ("word", "printed_gib"),
    [("h100", 79.18), ("h200", 139.8), ("l40s", 44.42), ("rtx 4090", 25_250_627_584 / GIB), ("gb10", 121.6),
     ("a100-40gb", 39.5), ("3090", 23.58), ("arc pro b60", 22.71), ("b300", 267.69), ("gb300", 276.62),
     ("rtx pro 6000", 94.97), ("b200", 178.35), ("mi300x", 191.98), ("5090", 31.37)],
)  # fmt: skip
def test_memory_that_servers_printed_lies_in_the_interval(word: str, printed_gib: float) -> None:
    found = accelerators.find(word)
    assert found is not None
    assert found.memory.low - 0.005 * GIB <= printed_gib * GIB <= found.memory.high + 0.005 * GIB
    assert found.name in {item.name for item in accelerators.by_memory(round(printed_gib * GIB))}


def test_by_memory_gives_the_closest_first_and_nothing_for_no_card() -> None:
    assert accelerators.by_memory(267.69 * GIB)[0].name == "NVIDIA B300 SXM6 AC"
    assert accelerators.by_memory(3 * GIB) == ()


@pytest.mark.parametrize(
    ("word", "expected"),
    [("8x H200", (8, "H200")), ("8×H200", (8, "H200")), ("2x4090", (2, "4090")), ("H200 x8", (8, "H200")),
     ("MI300X:8", (8, "MI300X")), ("MI300X", (1, "MI300X")), ("7900 xtx", (1, "7900 xtx")),
     (" 2080 Ti ", (1, "2080 Ti")), ("24GB", (1, "24GB"))],
)  # fmt: skip
def test_count_before_or_after_the_card(word: str, expected: tuple[int, str]) -> None:
    assert accelerators.split_count(word) == expected


@pytest.mark.parametrize(
    ("word", "expected"),
    [("24GiB", 24 * GIB), ("24 GB", 24 * GIB), ("80g", 80 * GIB), ("81559MiB", 81559 * 2**20), ("22.5GiB", 24159191040),
     ("h100", None), ("", None), ("GB", None), ("-3GB", None)],
)  # fmt: skip
def test_plain_sizes(word: str, expected: int | None) -> None:
    assert accelerators.parse_memory(word) == expected


@pytest.mark.parametrize(
    ("word", "links"), [("h100", True), ("l40s", False), ("mi300x", True), ("gb10", True), ("orin", False)]
)
def test_links_of_their_own(word: str, links: bool) -> None:
    found = accelerators.find(word)
    assert found is not None
    assert found.peer_to_peer is links


@given(st.text(max_size=60))
def test_any_text_is_taken(word: str) -> None:
    count, card = accelerators.split_count(word)
    assert count >= 0
    assert accelerators.find(card) is None or accelerators.matches(card)
    accelerators.parse_memory(word)
    accelerators.suggest(word)


@pytest.mark.parametrize(
    ("word", "name"),
    [
        ("A100-40", "NVIDIA A100-SXM4-40GB"),
        ("A100-80", "NVIDIA A100-SXM4-80GB"),
        ("a100 40", "NVIDIA A100-SXM4-40GB"),
        ("H100-80", "NVIDIA H100 80GB HBM3"),
        ("H200-141", "NVIDIA H200"),
        ("L40S-48", "NVIDIA L40S"),
    ],
)
def test_a_size_needs_no_unit_beside_a_card(word: str, name: str) -> None:
    found = accelerators.find(word)

    assert found is not None
    assert found.name == name


def test_a_number_alone_is_a_size_without_its_unit() -> None:
    assert accelerators.find("24") is None
    assert accelerators.suggest("24") == ("24GiB",)
