"""Start-up lines: one for each rank, device and pool, of the last of a log's starts, with sizes in one unit."""

from __future__ import annotations

from llmedic.collect import logs

TWO_RANKS = """\
(Worker_TP0 pid=1) INFO Available KV cache memory: 34.79 GiB
(Worker_TP1 pid=2) INFO Available KV cache memory: 34.49 GiB
"""


def test_every_rank_s_line_is_kept() -> None:
    (event,) = logs.read_text(TWO_RANKS).events

    assert [one.fields["gib"] for one in event.readings] == [34.79, 34.49]
    assert [one.process for one in event.readings] == ["Worker_TP0 pid=1", "Worker_TP1 pid=2"]
    assert event.fields["gib"] == 34.79
    assert event.count == 2


def test_a_line_that_is_repeated_for_ever_is_kept_in_part() -> None:
    (event,) = logs.read_text("Available KV cache memory: 1.00 GiB\n" * 1000).events

    assert event.count == 1000
    assert len(event.readings) == 256


def test_readings_are_those_of_the_last_start() -> None:
    start = "INFO non-default args: {'model': 'a/b', 'max_num_seqs': %d}\nAvailable KV cache memory: %d.00 GiB\n"
    first = start % (8, 1) + "ValueError: No available memory for the cache blocks.\n"
    found = logs.read_text(first + start.replace("'max_num_seqs': %d", "'max_model_len': %d") % (4096, 2))
    events = {event.id: event for event in found.events}

    assert [one.fields["gib"] for one in events["vllm-pool-gib"].readings] == [2.0]
    assert {key: event.start for key, event in events.items()} == {
        "vllm-args": 1,
        "vllm-pool-gib": 1,
        "vllm-kv-none": 0,
    }
    assert {flag.name for flag in found.deployment.flags} == {"model", "max_model_len"}


def test_the_lines_in_which_one_start_begins_are_one_start() -> None:
    found = logs.read_text(
        "vLLM API server version 0.11.0\n"
        "non-default args: {'model': 'a/b', 'max_num_seqs': 8}\n"
        "Initializing a V1 LLM engine (v0.11.0) with config: model='a/b', max_seq_len=4096\n"
    )

    assert {event.start for event in found.events} == {0}
    assert {"max_num_seqs", "max_model_len"} <= {flag.name for flag in found.deployment.flags}


def test_bytes_and_mebibytes_become_gibibytes() -> None:
    line = "Free memory on device (78.65/79.18 GiB) on startup. Desired GPU memory utilization is (0.9, 71.26 GiB). "
    line += "Actual usage is 1.12 GiB for weight, 5.56 GiB for peak activation, 0.13 GiB for non-torch memory, and "
    line += "0.10 GiB for CUDAGraph memory. Current kv cache memory in use is 3221225472 bytes."
    found = logs.read_text(line + "\nload_tensors:        CUDA0 model buffer size =  1536.00 MiB\n")
    fields = {event.id: event.fields for event in found.events}

    assert fields["vllm-memory-usage"]["pool_gib"] == 3.0
    assert fields["llama-model-buffer"]["size_gib"] == 1.5


def test_the_arguments_of_tgi_s_launcher_are_read_in_one_line_or_in_many() -> None:
    words = ('model_id: "google/gemma-3-27b-it"', "num_shard: Some(2)", "max_batch_prefill_tokens: Some(8000)")
    one = logs.read_text("INFO text_generation_launcher: Args { " + ", ".join(words) + " }")
    many = logs.read_text("INFO text_generation_launcher: Args {\n" + "".join(f"    {word},\n" for word in words))

    for found in (one, many):
        assert {flag.name: flag.value for flag in found.deployment.flags} == {
            "model": "google/gemma-3-27b-it",
            "tensor_parallel_size": 2,
            "max_prefill_tokens": 8000,
        }


def test_llama_cpp_and_ollama_name_their_cards() -> None:
    llama = logs.read_text(
        "ggml_cuda_init: found 2 CUDA devices:\n  Device 0: NVIDIA GeForce RTX 3090, compute capability 8.6, VMM: yes\n"
    ).deployment.hardware
    ollama = logs.read_text(
        'msg="inference compute" id=GPU-1 library=cuda name="NVIDIA GeForce RTX 3090" total="23.7 GiB" '
        'available="23.4 GiB"'
    ).deployment.hardware

    assert (llama.accelerator, llama.compute_capability, llama.count) == ("NVIDIA GeForce RTX 3090", 8.6, 2)
    assert (ollama.accelerator, ollama.memory_gib) == ("NVIDIA GeForce RTX 3090", 23.7)


HUGE = "9" * 400


def test_digits_without_end_are_no_measurement_fact_or_setting() -> None:
    said = logs.read_text(
        f"(EngineCore pid=1) INFO Available KV cache memory: {HUGE}.5 GiB\n"
        f"INFO non-default args: {{'model': 'a/b', 'max_model_len': {HUGE}, 'swap_space': 1e999, 'max_num_seqs': 8}}\n"
        f"Total host CPUs {HUGE}\n"
        f"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {HUGE}.00 GiB\n"
        f"llama_context: n_ctx         = {HUGE}\n"
    )

    assert {flag.name: flag.value for flag in said.deployment.flags} == {"model": "a/b", "max_num_seqs": 8}
    assert not any(value for event in said.events for value in event.fields.values() if not isinstance(value, str))
    assert said.observations == ()


def test_a_time_without_end_is_none() -> None:
    (event,) = logs.read_text(f'{{"ts": {HUGE[:320]}, "msg": "Available KV cache memory: 1.00 GiB"}}\n').events
    assert event.first_at is None
