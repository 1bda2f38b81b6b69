"""The figures of memory: one for every release, with a source."""

import pytest

from llmedic import errors
from llmedic.knowledge import memory
from llmedic.knowledge.releases import lives

RELEASES = (
    "0.6.6",
    "0.8.5",
    "0.9.2",
    "0.11.0",
    "0.16.0",
    "0.17.0",
    "0.19.0",
    "0.22.1",
    "0.28.0",
    "0.29.0",
    "0.33.0",
    "",
)


@pytest.mark.parametrize("term", sorted(memory.figures()))
def test_no_release_has_two_figures_of_a_term(term: str) -> None:
    for release in RELEASES:
        assert sum(lives(release, one.since, one.before) for one in memory.figures()[term]) <= 1


def test_every_figure_is_a_range_with_a_source() -> None:
    for found in memory.figures().values():
        for one in found:
            assert one.low <= one.likely <= one.high, one.id
            assert all((one.what, one.source, one.unit)), one.id


@pytest.mark.parametrize(("release", "bytes_per_logit"), [("0.11.0", 38), ("0.16.0", 38), ("0.17.0", 14), ("", 14)])
def test_the_sampler_by_release(release: str, bytes_per_logit: float) -> None:
    assert memory.figure("sampler_bytes", release).likely == bytes_per_logit


def test_a_hole_in_our_data_is_our_error() -> None:
    with pytest.raises(errors.KnowledgeError, match="graph_each_kib"):
        memory.figure("graph_each_kib")


@pytest.mark.parametrize(
    ("architecture", "release", "second"),
    [
        ("Qwen3ForCausalLM", "0.21.0", False),
        ("Qwen3ForCausalLM", "0.22.1", True),
        ("LlamaForCausalLM", "0.24.0", True),
        ("LlamaForCausalLM", "0.28.0", False),
        ("LlamaForCausalLM", "0.29.0", True),
        ("AnythingAtAll", "", True),
    ],
)
def test_which_model_runner(architecture: str, release: str, second: bool) -> None:
    assert memory.second_runner(architecture, release) is second
