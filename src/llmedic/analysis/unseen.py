"""The sources nobody gave: what they would show, and the option that gives them. Not evaluated is not OK."""

from __future__ import annotations

from collections.abc import Iterator

from llmedic.analysis.view import View
from llmedic.model.evidence import Gap

HARDWARE = ("gpu_temp_c", "gpu_sm_clock_mhz", "gpu_power_w", "host_cpu_util_ratio", "cpu_wait_ratio")
QUEUE = ("requests_running", "requests_waiting", "kv_cache_usage_ratio")
ASKED: dict[str, tuple[str, ...]] = {
    "log": ("log",),
    "queue and KV pool": ("http", "prom"),
    "earlier traffic": ("prom",),
    "settings": ("process", "settings"),
}
"""How the gaps of sources begin that were asked for what the missing kind would show."""
TRAFFIC = ("request_rate_per_s", "prompt_tokens_mean", "output_tokens_mean", "ttft_s")


def of(view: View) -> tuple[Gap, ...]:
    """A gap for each kind of evidence that is missing as a whole; not for what was given and failed, which says why."""
    told = [gap.what for gap in view.evidence.gaps]
    return tuple(gap for gap in _missing(view) if not any(what.startswith(ASKED.get(gap.what, ())) for what in told))


def _missing(view: View) -> Iterator[Gap]:
    if not view.has_log:
        yield Gap(what="log", why="none was given", how="--log FILE, or --log - from a pipe")
    if not view.flags_stated:
        yield Gap(what="settings", why="the engine's command line is not known", how="--args, --pid or a start-up log")
    if not _seen(view, QUEUE):
        how = "give the engine's URL, a Prometheus target or --metrics FILE"
        yield Gap(what="queue and KV pool", why="no metrics were given", how=how, names=QUEUE)
    if not _seen(view, HARDWARE):
        how = "--pid on the engine's host shows the CPU side, nvidia-smi -q the GPU"
        yield Gap(what="hardware", why="no figures of the host or the GPU", how=how, names=HARDWARE)
    if not any(_compared(view, name) for name in TRAFFIC):
        how = "--baseline NAME, or --compare-to 24h with Prometheus"
        yield Gap(what="earlier traffic", why="nothing to compare the window with", how=how, names=TRAFFIC)


def _seen(view: View, names: tuple[str, ...]) -> bool:
    return any(view.observation(name) is not None for name in names)


def _compared(view: View, name: str) -> bool:
    return view.change(name, "typical") is not None
