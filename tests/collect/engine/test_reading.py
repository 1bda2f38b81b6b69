from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import parser

from llmedic.collect import engine
from llmedic.knowledge import metrics, vocabulary
from llmedic.model.evidence import Evidence
from llmedic.model.observation import Quantiles, Series
from llmedic.model.raw import Raw

BEGUN = 1_800_000_000.0
WINDOW_S = 10.0


def raw(body: str | bytes, end: str, target: str = "http://a:8000", *, window_s: float = WINDOW_S) -> Raw:
    """A whole page at one end of the window."""
    return Raw(
        source="engine",
        kind="metrics",
        target=target,
        at=BEGUN + (0.0 if end == "first" else window_s),
        elapsed_s=0.01,
        status=200,
        body=body.encode() if isinstance(body, str) else body,
        meta={"end": end, "begun": repr(BEGUN), "window_s": repr(window_s)},
    )


def answer(kind: str, body: object, target: str = "http://a:8000", status: int = 200) -> Raw:
    return Raw(source="engine", kind=kind, target=target, at=BEGUN, status=status, body=json.dumps(body).encode())


def pair(first: str, last: str, target: str = "http://a:8000") -> tuple[Raw, Raw]:
    return raw(first, "first", target), raw(last, "last", target)


def value(evidence: Evidence, name: str, instance: str = "", period: str = "window") -> Any:
    found = [o.value for o in evidence.observations if (o.name, o.instance, o.period) == (name, instance, period)]
    assert len(found) == 1, f"{name}: {len(found)} times"
    return found[0]


def missing(evidence: Evidence, name: str, period: str = "window") -> bool:
    return not any(o.name == name and o.period == period for o in evidence.observations)


def vllm(tokens: float = 0, finished: float = 0, running: float = 0, part: str = "0", **more: float) -> str:
    labels = f'engine="{part}",model_name="m"'
    lines = [
        f"vllm:num_requests_running{{{labels}}} {running}",
        f"vllm:generation_tokens_total{{{labels}}} {tokens}",
        f'vllm:request_success_total{{{labels},finished_reason="stop"}} {finished}',
    ]
    lines += [f"vllm:{name}{{{labels}}} {number}" for name, number in more.items()]
    return "\n".join(lines) + "\n"


def spread(name: str, values: list[float], edges: tuple[float, ...] = (0.3, 1.0, 2.5), labels: str = "") -> str:
    comma = f",{labels}" if labels else ""
    lines = [f'{name}_bucket{{le="{edge}"{comma}}} {sum(v <= edge for v in values)}' for edge in edges]
    lines.append(f'{name}_bucket{{le="+Inf"{comma}}} {len(values)}')
    braces = f"{{{labels}}}" if labels else ""
    return "\n".join([*lines, f"{name}_sum{braces} {sum(values)}", f"{name}_count{braces} {len(values)}"]) + "\n"


def test_nothing_is_nothing() -> None:
    assert engine.read(()) == Evidence()
    assert engine.read((Raw(source="logs", kind="lines"),)) == Evidence()


def reference(page: bytes, name: str) -> float:
    families = parser.text_string_to_metric_families(page.decode())
    return math.fsum(sample.value for family in families for sample in family.samples if sample.name == name)


def test_the_recorded_pages_give_what_an_independent_reader_computes(recorded: Callable[[str], bytes]) -> None:
    first, last = recorded("vllm-0.32.0-first.prom"), recorded("vllm-0.32.0-last.prom")
    evidence = engine.read((raw(first, "first"), raw(last, "last")))

    def gained(name: str) -> float:
        return reference(last, name) - reference(first, name)

    assert gained("vllm:generation_tokens_total") > 0
    assert value(evidence, "output_tokens_count") == gained("vllm:generation_tokens_total")
    assert value(evidence, "prompt_tokens_per_s") == pytest.approx(gained("vllm:prompt_tokens_total") / WINDOW_S)
    assert value(evidence, "finished_count") == gained("vllm:request_success_total")
    hits, queries = gained("vllm:prefix_cache_hits_total"), gained("vllm:prefix_cache_queries_total")
    assert value(evidence, "prefix_cache_hit_ratio") == pytest.approx(hits / queries)
    ttft = value(evidence, "ttft_s")
    number = gained("vllm:time_to_first_token_seconds_count")
    assert isinstance(ttft, Quantiles)
    assert ttft.count == number == value(evidence, "first_tokens_count")
    assert ttft.mean == pytest.approx(gained("vllm:time_to_first_token_seconds_sum") / number)
    assert value(evidence, "kv_blocks_count") == 512
    assert value(evidence, "kv_cache_tokens") == 65536
    flags = {flag.name: flag.value for flag in evidence.deployment.flags}
    assert (flags["block_size"], flags["enable_prefix_caching"]) == (128.0, True)
    lifetime = value(evidence, "ttft_s", period="lifetime")
    assert lifetime.count == reference(last, "vllm:time_to_first_token_seconds_count")
    assert evidence.gaps == ()


def test_every_observation_is_in_the_vocabulary_with_its_unit(recorded: Callable[[str], bytes]) -> None:
    evidence = engine.read(
        (raw(recorded("vllm-0.32.0-first.prom"), "first"), raw(recorded("vllm-0.32.0-last.prom"), "last"))
    )
    words = set(vocabulary.names())
    assert len(evidence.observations) > 40
    for observation in evidence.observations:
        assert observation.name in words
        assert observation.unit == vocabulary.unit(observation.name)
        if observation.period == "lifetime":
            assert observation.window_s is None


def test_rates_and_arrivals() -> None:
    evidence = engine.read(pair(vllm(100, 10, 3), vllm(600, 30, 8)))
    assert value(evidence, "output_tokens_per_s") == 50
    assert value(evidence, "completed_requests_per_s") == 2
    assert value(evidence, "request_rate_per_s") == pytest.approx((20 + 5) / 10)
    assert value(evidence, "counter_resets_count") == 0


def test_a_silent_engine_shows_zeros_not_gaps() -> None:
    evidence = engine.read(pair(vllm(100, 10, 3), vllm(100, 10, 3)))
    assert value(evidence, "output_tokens_count") == 0
    assert value(evidence, "request_rate_per_s") == 0
    assert missing(evidence, "aborted_ratio")


def test_requests_that_were_turned_away() -> None:
    turned_away = 'vllm:admission_rejections_total{model_name="m",reason="max_num_queued_reqs"}'
    parts = [vllm(part=part) for part in "01"]

    evidence = engine.read(pair("".join((*parts, f"{turned_away} 3\n")), "".join((*parts, f"{turned_away} 10\n"))))

    assert value(evidence, "admission_rejections_count") == 7
    assert value(evidence, "admission_rejections_count", period="lifetime") == 10


def test_shares_of_how_requests_ended() -> None:
    def page(**ends: int) -> str:
        rows = (f'vllm:request_success_total{{finished_reason="{end}"}} {count}' for end, count in ends.items())
        return "\n".join(rows) + "\n"

    evidence = engine.read(pair(page(stop=5, abort=0, error=0, length=0), page(stop=9, abort=3, error=1, length=2)))
    assert value(evidence, "finished_count") == 10
    assert value(evidence, "aborted_ratio") == pytest.approx(0.3)
    assert value(evidence, "error_finish_ratio") == pytest.approx(0.1)
    assert value(evidence, "length_finish_ratio") == pytest.approx(0.2)
    assert value(evidence, "completed_requests_per_s") == pytest.approx(0.6)


def test_a_restart_inside_the_window_counts_only_what_came_after() -> None:
    first = vllm(9000, 900, 5) + f"process_start_time_seconds {BEGUN - 5000}\n" + spread("vllm:x", [])
    last = vllm(200, 12, 5) + f"process_start_time_seconds {BEGUN + 6}\n"
    evidence = engine.read(pair(first, last))
    assert value(evidence, "counter_resets_count") == 1
    assert value(evidence, "output_tokens_count") == 200
    assert value(evidence, "output_tokens_per_s") == pytest.approx(200 / 4)
    assert value(evidence, "uptime_s") == pytest.approx(4)


def test_a_restart_that_has_already_overtaken_its_counters_is_seen_by_the_process_start() -> None:
    first = vllm(100, 10) + f"process_start_time_seconds {BEGUN - 5000}\n"
    last = vllm(150, 12) + f"process_start_time_seconds {BEGUN + 5}\n"
    evidence = engine.read(pair(first, last))
    assert value(evidence, "output_tokens_count") == 150
    assert value(evidence, "counter_resets_count") == 1


def test_counters_that_went_backwards_without_a_process_start() -> None:
    evidence = engine.read(pair(vllm(9000, 900), vllm(50, 901)))
    assert value(evidence, "counter_resets_count") == 1
    assert value(evidence, "output_tokens_count") == 50
    assert value(evidence, "finished_count") == 901


@given(st.integers(0, 10**9), st.integers(0, 10**9), st.integers(0, 10**6), st.integers(0, 10**6))
def test_no_rate_is_ever_negative(before: int, after: int, ended_before: int, ended_after: int) -> None:
    evidence = engine.read(pair(vllm(before, ended_before, 7), vllm(after, ended_after, 2)))
    for observation in evidence.observations:
        if isinstance(observation.value, float):
            assert observation.value >= 0
            assert math.isfinite(observation.value)


def test_values_that_are_not_numbers_are_left_out_and_said() -> None:
    first = vllm(1, 1, 2) + 'vllm:kv_cache_usage_perc{engine="0"} NaN\n'
    last = vllm(5, 2, 2) + 'vllm:kv_cache_usage_perc{engine="0"} +Inf\n'
    evidence = engine.read(pair(first, last))
    assert missing(evidence, "kv_cache_usage_ratio")
    (gap,) = evidence.gaps
    assert "vllm:kv_cache_usage_perc" in gap.why
    assert gap.how


def test_lines_that_cannot_be_read_are_said() -> None:
    evidence = engine.read(pair(vllm(1, 1, 2), vllm(5, 2, 2) + 'vllm:num_requests_waiting{engine="0" 3\n'))
    assert value(evidence, "output_tokens_count") == 4
    assert any("1 lines could not be read" in gap.why for gap in evidence.gaps)


def test_data_parallel_engines_are_kept_apart_and_joined() -> None:
    def page(tokens: int) -> str:
        return vllm(tokens, 0, 4, "0", kv_cache_usage_perc=0.2) + vllm(3 * tokens, 0, 1, "1", kv_cache_usage_perc=0.9)

    evidence = engine.read(pair(page(100), page(200)))
    assert value(evidence, "output_tokens_count") == 400
    assert value(evidence, "output_tokens_count", "a:8000#0") == 100
    assert value(evidence, "output_tokens_count", "a:8000#1") == 300
    assert value(evidence, "requests_running").points[-1][1] == 5
    assert value(evidence, "kv_cache_usage_ratio").points[-1][1] == 0.9
    assert value(evidence, "kv_cache_usage_ratio", "a:8000#0").points[-1][1] == 0.2


def test_replicas_are_kept_apart_and_joined() -> None:
    one = pair(vllm(0, 0, 1, kv_cache_usage_perc=0.1), vllm(100, 5, 2, kv_cache_usage_perc=0.95))
    other = pair(
        vllm(0, 0, 3, kv_cache_usage_perc=0.5), vllm(50, 5, 3, kv_cache_usage_perc=0.5), target="http://b:8000"
    )
    evidence = engine.read((*one, *other))
    assert value(evidence, "output_tokens_per_s") == 15
    assert value(evidence, "output_tokens_per_s", "b:8000") == 5
    assert [v for _, v in value(evidence, "requests_running").points] == [4, 5]
    assert [v for _, v in value(evidence, "kv_cache_usage_ratio").points] == [0.5, 0.95]


def test_a_single_replica_is_the_service() -> None:
    evidence = engine.read(pair(vllm(0), vllm(10)))
    assert {o.instance for o in evidence.observations} == {""}


@given(st.lists(st.tuples(st.integers(0, 1000), st.integers(0, 1000)), min_size=2, max_size=5))
def test_the_service_is_the_sum_of_its_replicas(gains: list[tuple[int, int]]) -> None:
    raws = []
    for index, (before, gain) in enumerate(gains):
        raws += pair(vllm(before), vllm(before + gain), target=f"http://r{index}:8000")
    evidence = engine.read(raws)
    parts = [value(evidence, "output_tokens_count", f"r{index}:8000") for index in range(len(gains))]
    assert value(evidence, "output_tokens_count") == sum(parts) == sum(gain for _, gain in gains)


def test_settings_in_which_replicas_differ_are_said() -> None:
    cards = [{"data": [{"id": "m", "owned_by": "vllm", "max_model_len": n}]} for n in (4096, 8192)]
    evidence = engine.read(
        (
            *pair(vllm(0), vllm(1)),
            answer("models", cards[0]),
            *pair(vllm(0), vllm(1), "http://b:8000"),
            answer("models", cards[1], "http://b:8000"),
        )
    )
    (gap,) = evidence.gaps
    assert gap.what == "setting max_model_len"
    assert "b:8000 8192" in gap.why


OLD_AND_NEW = [
    ("vllm:gpu_cache_usage_perc", "vllm:kv_cache_usage_perc", "kv_cache_usage_ratio"),
    ("vllm_kv_cache_usage_perc", "vllm:kv_cache_usage_perc", "kv_cache_usage_ratio"),
    ("ray_vllm_num_requests_running", "vllm:num_requests_running", "requests_running"),
    ("sglang_num_queue_reqs", "sglang:num_queue_reqs", "requests_waiting"),
]


@pytest.mark.parametrize(("old", "new", "name"), OLD_AND_NEW)
def test_older_and_relayed_names_mean_the_same(old: str, new: str, name: str) -> None:
    evidence = [engine.read(pair(f"{spelled} 0.25\n", f"{spelled} 0.5\n")) for spelled in (old, new)]
    assert value(evidence[0], name) == value(evidence[1], name)


def test_of_two_names_for_one_thing_the_newer_is_used() -> None:
    page = "vllm:gpu_cache_usage_perc 0.1\nvllm:kv_cache_usage_perc 0.8\n"
    assert value(engine.read(pair(page, page)), "kv_cache_usage_ratio").points[-1][1] == 0.8


def test_the_old_time_between_tokens() -> None:
    old = "vllm:time_per_output_token_seconds"
    evidence = engine.read(pair(spread(old, [0.1]), spread(old, [0.1, 0.2, 0.2])))
    assert value(evidence, "itl_s").mean == pytest.approx(0.2)
    assert missing(evidence, "tpot_s")


def test_lifetime_is_never_taken_for_the_window() -> None:
    slow, quick = [30.0] * 50, [0.05] * 5
    name = "vllm:time_to_first_token_seconds"
    edges = (0.01, 0.1, 1.0, 10.0, 40.0)
    evidence = engine.read(pair(spread(name, slow, edges), spread(name, slow + quick, edges)))
    assert value(evidence, "ttft_s").p95 <= 0.1
    assert value(evidence, "ttft_s", period="lifetime").p95 > 10


def test_the_front_end_share_of_the_first_token() -> None:
    def page(n: int) -> str:
        return (
            spread("vllm:time_to_first_token_seconds", [1.0] * n)
            + spread("vllm:request_queue_time_seconds", [0.2] * n)
            + spread("vllm:request_prefill_time_seconds", [0.1] * n)
        )

    evidence = engine.read(pair(page(2), page(6)))
    assert value(evidence, "queue_share_ratio") == pytest.approx(0.2)
    assert value(evidence, "ttft_unexplained_ratio") == pytest.approx(0.7)
    assert value(evidence, "queue_s").floor == 0.3


def test_prefill_work_excludes_what_came_from_the_cache() -> None:
    def page(n: int) -> str:
        return f"vllm:prompt_tokens_total {1000 * n}\nvllm:prefix_cache_hits_total {800 * n}\n" + (
            f"vllm:prefix_cache_queries_total {1000 * n}\n"
        )

    evidence = engine.read(pair(page(1), page(3)))
    assert value(evidence, "prompt_tokens_per_s") == 200
    assert value(evidence, "prefill_tokens_per_s") == 40
    assert value(evidence, "prefix_cache_hit_ratio") == pytest.approx(0.8)


def test_one_page_alone_gives_levels_lifetime_and_a_gap() -> None:
    evidence = engine.read((raw(vllm(500, 20, 4), "last"),))
    assert value(evidence, "requests_running") == Series(points=((10.0, 4.0),))
    assert value(evidence, "finished_count", period="lifetime") == 20
    assert missing(evidence, "finished_count")
    (gap,) = evidence.gaps
    assert "one page" in gap.why
    assert "ttft_s" in gap.names


@given(
    end=st.text(max_size=5) | st.sampled_from(["first", "last"]),
    begun=st.text(max_size=5) | st.sampled_from(["nan", "inf", "1e308"]),
    window_s=st.text(max_size=5) | st.sampled_from(["nan", "-inf", "-1"]),
    at=st.floats(allow_nan=False),
)
def test_notes_of_a_bundle_from_elsewhere_are_not_believed(end: str, begun: str, window_s: str, at: float) -> None:
    pages = pair(vllm(500, 20, 4), vllm(900, 30, 4))
    changed = replace(pages[0], at=at, meta={"end": end, "begun": begun, "window_s": window_s})
    assert value(engine.read((changed, pages[1])), "finished_count", period="lifetime") == 30


def test_sglang_workers_that_repeat_a_value_are_counted_once() -> None:
    def page(tokens: int) -> str:
        rows = []
        for rank in range(4):
            labels = f'model_name="m",engine_type="unified",tp_rank="{rank}",pp_rank="0",moe_ep_rank="0"'
            rows += [
                f"sglang:num_running_reqs{{{labels}}} 6",
                f'sglang:num_queue_reqs{{{labels},priority=""}} 5',
                f'sglang:num_queue_reqs{{{labels},priority="1"}} 3',
                f'sglang:num_queue_reqs{{{labels},priority="2"}} 2',
                f"sglang:token_usage{{{labels}}} 0.91",
                f"sglang:max_total_num_tokens{{{labels}}} 120000",
                f"sglang:context_len{{{labels}}} 32768",
                f"sglang:num_retracted_requests_total{{{labels}}} {tokens // 100}",
                f"sglang:gen_throughput{{{labels}}} 480",
            ]
        rows += [f'sglang:generation_tokens_total{{model_name="m"}} {tokens}']
        rows += [f'sglang:prompt_tokens_total{{model_name="m"}} {4 * tokens}']
        rows += [f'sglang:cached_tokens_total{{model_name="m",cache_source="device"}} {tokens}']
        return "\n".join(rows) + "\n"

    evidence = engine.read(pair(page(1000), page(2000)))
    assert evidence.deployment.engine == "sglang"
    assert value(evidence, "requests_running").points[-1][1] == 6
    assert value(evidence, "requests_waiting").points[-1][1] == 5
    assert value(evidence, "kv_cache_usage_ratio").points[-1][1] == 0.91
    assert value(evidence, "kv_cache_tokens") == 120000
    assert value(evidence, "preemptions_per_min") == 60
    assert value(evidence, "prefix_cache_hit_ratio") == pytest.approx(0.25)
    assert value(evidence, "output_tokens_per_s").points[-1][1] == 480
    assert [(flag.name, flag.value) for flag in evidence.deployment.flags] == [("max_model_len", 32768.0)]


def test_sglang_ranks_of_data_parallel_attention() -> None:
    page = "".join(f'sglang:num_running_reqs{{tp_rank="{n}",dp_rank="{n}"}} {n + 1}\n' for n in range(2))
    evidence = engine.read(pair(page, page))
    assert value(evidence, "requests_running").points[-1][1] == 3
    assert value(evidence, "requests_running", "a:8000#1").points[-1][1] == 2


def test_llama_cpp() -> None:
    def page(n: int) -> str:
        return f"""llamacpp:prompt_tokens_total {100 * n}
llamacpp:prompt_tokens_cached_total {300 * n}
llamacpp:tokens_predicted_total {50 * n}
llamacpp:tokens_predicted_seconds_total {5 * n}
llamacpp:requests_processing 4
llamacpp:requests_deferred 9
llamacpp:n_busy_slots_per_decode 3.5
llamacpp:n_past_max 7000
"""

    evidence = engine.read(pair(page(1), page(3)))
    assert value(evidence, "requests_waiting").points[-1][1] == 9
    assert value(evidence, "prefill_tokens_per_s") == 20
    assert value(evidence, "prefix_cache_hit_ratio") == pytest.approx(0.75)
    assert value(evidence, "decode_tokens_per_s") == pytest.approx(10)
    assert value(evidence, "batch_size_mean", period="lifetime") == 3.5
    assert value(evidence, "max_prompt_tokens_seen", period="lifetime") == 7000
    assert missing(evidence, "kv_cache_usage_ratio")


def test_tgi() -> None:
    def page(n: int) -> str:
        return (
            f"tgi_request_count {20 * n}\ntgi_request_success {18 * n}\n"
            f'tgi_request_failure{{err="overloaded"}} {2 * n}\ntgi_queue_size 7\n'
            + spread("tgi_request_generated_tokens", [200.0] * n, (100, 300))
            + spread("tgi_batch_inference_duration", [0.4] * n, labels='method="prefill"')
            + spread("tgi_batch_inference_duration", [9.0] * n, labels='method="decode"')
        )

    evidence = engine.read(pair(page(1), page(3)))
    assert value(evidence, "request_rate_per_s") == 4
    assert value(evidence, "http_error_ratio") == pytest.approx(0.1)
    assert value(evidence, "output_tokens_count") == 400
    assert value(evidence, "output_tokens_mean").mean == 200
    assert value(evidence, "prefill_s").mean == pytest.approx(0.4)


def test_a_page_of_something_else() -> None:
    evidence = engine.read(pair("node_load1 3\n", "node_load1 4\n"))
    assert evidence.deployment.engine == ""
    assert any("no metric of vLLM" in gap.why for gap in evidence.gaps)


def test_a_hit_rate_of_minus_one_is_a_cache_that_is_off() -> None:
    page = vllm(1) + "vllm:gpu_prefix_cache_hit_rate -1\n"
    assert missing(engine.read(pair(page, page)), "prefix_cache_hit_ratio", "lifetime")


def test_reading_twice_gives_the_same(recorded: Callable[[str], bytes]) -> None:
    raws = (raw(recorded("vllm-0.32.0-first.prom"), "first"), raw(recorded("vllm-0.32.0-last.prom"), "last"))
    assert engine.read(raws) == engine.read(raws)


ALL_NAMES = sorted(name for kind in metrics.ENGINES for name in metrics.names(kind).samples)
label_sets = st.dictionaries(
    st.sampled_from(["engine", "dp_rank", "tp_rank", "priority", "le", "finished_reason", "method", "block_size"]),
    st.sampled_from(["", "0", "1", "+Inf", "abort", "prefill", "x"]),
    max_size=3,
)
rows = st.tuples(st.sampled_from(ALL_NAMES), label_sets, st.floats() | st.sampled_from([0.0, 1.7e308, -1.7e308]))


def written(found: list[tuple[str, dict[str, str], float]]) -> str:
    lines = []
    for name, labels, number in found:
        inside = ",".join(f'{label}="{text}"' for label, text in labels.items())
        lines.append(f"{name}{{{inside}}} {number!r}\n")
    return "".join(lines)


@given(st.lists(rows, min_size=1, max_size=12), st.lists(rows, min_size=1, max_size=12))
def test_any_pages_give_evidence(first: list[Any], last: list[Any]) -> None:
    evidence = engine.read(pair(written(first), written(last)))
    for observation in evidence.observations:
        if isinstance(observation.value, float):
            assert math.isfinite(observation.value)


def test_absurd_counters_are_left_out() -> None:
    page = "".join(f'vllm:request_success_total{{finished_reason="{end}"}} 1.7e308\n' for end in ("stop", "length"))
    evidence = engine.read(pair("vllm:num_requests_running 1\n", page))
    assert missing(evidence, "finished_count")
    assert missing(evidence, "finished_count", "lifetime")


def test_a_replica_that_gives_no_answer_is_counted() -> None:
    alive = pair("vllm:num_requests_running 1\n", "vllm:num_requests_running 1\n")
    dead = Raw(source="engine", kind="metrics", target="http://b:8000", error="connection refused", hint="is it up?")
    evidence = engine.read([*alive, dead])
    assert value(evidence, "silent_replicas_count") == 1
    assert missing(engine.read(alive), "silent_replicas_count")
