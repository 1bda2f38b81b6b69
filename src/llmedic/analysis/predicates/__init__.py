"""Conditions that need more than a threshold: named, typed, each with the reason for its numbers.

A rule names a predicate by its function's name. There is no other way in: the table below is the list.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from llmedic.analysis.outcome import Outcome
from llmedic.analysis.predicates import comparison, ledger, memory, scheduling
from llmedic.analysis.view import View

PREDICATES: Mapping[str, Callable[[View], Outcome]] = {
    predicate.__name__: predicate
    for predicate in (
        comparison.a_symptom_is_ticked,
        comparison.cached_tokens_vanish,
        comparison.first_request_is_slow,
        comparison.gpu_busier_in_one_row,
        comparison.measured_across_an_upgrade,
        comparison.memory_grows_steadily,
        comparison.one_replica_has_no_hits,
        comparison.production_differs_from_test,
        comparison.slow_rows_have_a_full_pool,
        comparison.slower_than_before,
        comparison.speed_falls_with_depth,
        comparison.throughput_flat_with_load,
        comparison.throughput_is_flat_over_concurrency,
        comparison.token_time_grows_with_batch,
        ledger.end_token_ids_differ,
        ledger.fraction_is_a_little_above_free,
        ledger.model_is_small_for_its_shards,
        ledger.more_threads_than_quota,
        ledger.much_memory_is_taken_at_start,
        ledger.one_request_exceeds_pool,
        ledger.pool_demand_exceeds_pool,
        ledger.quantisation_needs_newer_gpu,
        ledger.served_length_beyond_positions,
        ledger.tensor_parallel_does_not_divide,
        ledger.weights_exceed_the_cards,
        memory.graphs_do_not_fit_beside,
        memory.ledger_leaves_no_cache,
        memory.longest_length_exceeds_the_cache,
        scheduling.burst_is_over,
        scheduling.engine_makes_no_progress,
        scheduling.ranks_are_uneven,
        scheduling.requests_disappear,
        scheduling.running_at_a_round_number,
        scheduling.running_goes_back_to_waiting,
        scheduling.running_is_pinned,
        scheduling.something_hurts,
    )
}
