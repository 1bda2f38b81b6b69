from __future__ import annotations

import json
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from llmedic.collect import redact
from llmedic.model.raw import Raw

SECRET = "CANARY7secret0"
PROMPT = "the CANARY7prompt of a patient"

# How engines, shells, proxies and orchestrators print secrets: the marks stand for the secret.
SECRETS = [
    "vllm serve m --api-key {} --port 8000",
    "vllm serve m --api-key {} second-{} --port 8000",
    "--api-key={}",
    "--hf-token {} --model m",
    "python\0-m\0vllm\0--api-key\0{}\0--port\08000",
    '["--api-key", "{}", "--port", "1"]',
    '["--api-key", "{}", "second-{}", "--port", "1"]',
    '{{"args": "[\\"--api-key\\", \\"{}\\", \\"second-{}\\", \\"--port\\", \\"1\\"]"}}',
    "args: [--api-key, {}, second-{}, --port, 1]",
    "args: [--hf-token, {}]",
    "args:\n- --api-key\n- {}\n- second-{}\n- --port\n- '8000'",
    "  - --api-key\n  - {}\n- name: next\n",
    "args:\n- --api-key\n- {}\n- --port\n- '8000'",
    "non-default args: {{'model': 'm', 'api_key': ['{}'], 'max_num_seqs': 4, 'hf_token': '{}'}}",
    "ServerArgs(model_path='m', api_key='{}', tp_size=2)",
    'INFO:root:args {{"api_key": "{}", "n": 4}}',
    '{{"outer": "{{\\"api_key\\": \\"{}\\"}}"}}',
    "api_key: {}\nmodel: m",
    "  password: {}",
    "HF_TOKEN={}\nMAX_JOBS=4",
    "AWS_SECRET_ACCESS_KEY={}",
    "export WANDB_API_KEY='{}'",
    "A=1\0OPENAI_API_KEY={}\0B=2",
    "MY_SIGNING_SECRET={}",
    "env:\n- name: HF_TOKEN\n  value: {}\n- name: A\n  value: b",
    '{{"name":"HF_TOKEN","value":"{}"}}',
    "Authorization: Bearer {}",
    "authorization: Basic {}==",
    "{{'authorization': 'Bearer {}', 'host': 'x'}}",
    "curl -H 'Authorization: Bearer {}' http://x/v1/models",
    "headers=[(b'host', b'x'), (b'authorization', b'Bearer {}')]",
    "X-Api-Key: {}",
    "Cookie: session={}; other={}",
    "Set-Cookie: id={}; HttpOnly",
    "answered to Bearer {}",
    "https://user:{}@example.com/v1",
    "https://{}@example.com",
    "GET /v1/models?token={}&x=1",
    "https://b/x?X-Amz-Signature={}&a=2",
    "https://b/x?sig={}",
    "-----BEGIN RSA PRIVATE KEY-----\nMII{}\nabc\n-----END RSA PRIVATE KEY-----\nnext",
    '"k": "-----BEGIN PRIVATE KEY-----\\nMII{}\\n-----END PRIVATE KEY-----\\n", "a": 1',
    "-----BEGIN PRIVATE KEY-----\nMII{}",
]
PROMPTS = [
    "Received request cmpl-1: prompt: '{}', params: SamplingParams(n=1), prompt_token_ids: [1, 2], lora_request: None.",
    'Request cmpl-1 details: prompt: "{} isn\'t", prompt_token_ids: [1, 2], prompt_embeds shape: None.',
    "Generated response chatcmpl-2 (streaming): output: '{}', output_token_ids: [4, 5], finish_reason: stop",
    'Request a JSON body: {{"model":"m","messages":[{{"role":"user","content":"{}"}},{{"role":"user","con',
    'Request a JSON body: {{"messages":[{{"role":"user","content":[{{"type":"text","text":"{}"}}]}}],"max_tokens":5}}',
    "Receive: obj=GenerateReqInput(rid='a', text='{}' ... 'and {}', input_ids=None, stream=True)",
    "Finish: obj=GenerateReqInput(rid='a', text=None), out={{'text': '{}', 'meta_info': {{'prompt_tokens': 12}}}}",
    '[{{"id":0,"n_ctx":4096,"prompt":"{}","generated":"{}","next_token":[{{"n_decoded":3}}]}}]',
    '{{\n  "messages": [\n    {{\n      "role": "user",\n      "content": "{}"\n    }}\n  ]\n}}',
    "1 validation error\n  Input should be valid [type=x, input_value={{'a': '{}...{}'}}, input_type=dict]",
    '{{"args": "{{\\"prompt\\": \\"{}\\", \\"n\\": 4}}"}}',
    "slot process: n_decoded = 3, next token:  1234 '{}'",
    "Parsing input with format peg-native: {}",
    'time=1 level=DEBUG msg="completion request" prompt="{}"',
    "response_body={{streaming_complete: content='{}', chunks=3}}",
    "prompt: |\n  first\n  {}\nmodel: m",
    '{{"choices":[{{"message":{{"role":"assistant","content":"{}","reasoning_content":"{}"}}}}]}}',
    'generate{{parameters=GenerateParameters {{ best_of: None }}}}: inputs: "{}"',
]


@pytest.mark.parametrize("shape", SECRETS)
def test_a_secret_goes(shape: str) -> None:
    assert SECRET not in redact.text(shape.format(SECRET, SECRET))


@pytest.mark.parametrize("shape", PROMPTS)
def test_a_prompt_goes(shape: str) -> None:
    assert "CANARY" not in redact.text(shape.format(PROMPT, PROMPT))


@given(secret=st.text("abcXYZ0123456789-_.~+", min_size=8, max_size=60), shape=st.sampled_from(SECRETS))
@example(secret="-leading", shape="Authorization: Bearer {}")
@example(secret="with/a/slash", shape="https://user:{}@example.com/v1")
def test_any_secret_goes_from_where_secrets_stand(secret: str, shape: str) -> None:
    word = f"K9{secret}"

    assert word not in redact.text(shape.format(word, word))


@given(prompt=st.text(min_size=1, max_size=80))
def test_any_prompt_goes_from_a_python_log(prompt: str) -> None:
    line = f"Received request a: prompt: {PROMPT + prompt!r}, params: SamplingParams(n=1), lora_request: None."

    shown = redact.text(line)

    assert "CANARY" not in shown
    assert shown.endswith(", params: SamplingParams(n=1), lora_request: None.")


@given(prompt=st.text(max_size=60), levels=st.integers(1, 2))
@example(prompt="it's \"so", levels=1)
@example(prompt="the dogs' bone", levels=1)
def test_any_prompt_goes_from_a_line_packed_into_json(prompt: str, levels: int) -> None:
    line = f"Received request a: prompt: {PROMPT + prompt + PROMPT!r}, params: SamplingParams(n=1)."
    for _ in range(levels):
        line = json.dumps({"log": line, "stream": "stdout"})

    assert "CANARY" not in redact.text(line)


@given(messages=st.lists(st.dictionaries(st.sampled_from(["role", "content"]), st.text(max_size=40)), max_size=4))
def test_a_request_stays_json(messages: list[dict[str, str]]) -> None:
    asked = [*messages, {"role": "user", "content": PROMPT}]
    body = json.dumps({"model": "m", "messages": asked, "max_tokens": 5, "stream": True})

    shown = json.loads(redact.text(body))

    assert "CANARY" not in str(shown)
    assert (shown["model"], shown["max_tokens"], shown["stream"]) == ("m", 5, True)


@given(
    pieces=st.lists(
        st.sampled_from(
            [*(shape.format(SECRET, SECRET) for shape in SECRETS), *(s.format(PROMPT, PROMPT) for s in PROMPTS)]
        )
        | st.text(max_size=30)
        | st.text("{}[]()\"'\\:=,-\n <>redacted123 promptkeymessages", max_size=40),
        max_size=6,
    ),
    joint=st.sampled_from(["", " ", "\n", ", "]),
)
def test_redacting_twice_changes_nothing(pieces: list[str], joint: str) -> None:
    once = redact.text(joint.join(pieces))

    assert redact.text(once) == once


@given(body=st.binary(max_size=200))
def test_a_raw_without_secrets_stays_as_it_is_and_the_rest_settles(body: bytes) -> None:
    once = redact.raws([Raw(source="logs", kind="lines", body=body)]).raws

    assert redact.raws(once).raws == once


@pytest.mark.parametrize(
    "line",
    [
        "prompt eval time =     123.45 ms /    12 tokens",
        "eos_token: </s>, eos_token_id=2, token_usage: 0.5, #new-token: 12, max_num_batched_tokens=2048",
        "Prefill batch, #new-seq: 1, #new-token: 12, #cached-token: 0, token usage: 0.00, #queue-req: 0",
        "ValueError: unexpected token: foo",
        "tokenizer='x', skip_tokenizer_init=False, ssl_keyfile='/a', api_key=None",
        "Engine 000: Avg prompt throughput: 12.5 tokens/s, Running: 3 reqs, GPU KV cache usage: 3.1%",
        "oom-kill:task_memcg=/user.slice/user@1000.service,task=python",
        "Bearer token required",
        "The decoder prompt (length 5000) is longer than the maximum model length of 4096.",
        "Uvicorn running on http://0.0.0.0:8000 (Press CTRL+C to quit)",
        'vllm:prompt_tokens_total{engine="0",model_name="m"} 12.0',
        "error: unrecognized arguments: --max-num-seq 4",
        '{"max_tokens": 100, "prompt_tokens": 7, "token": 5, "content": null, "prompt": ""}',
        "num_prompts: 4\nsort_keys: true\nkey: value",
    ],
)
def test_what_a_verdict_needs_stays(line: str) -> None:
    assert redact.text(line) == line


def test_a_chat_template_stays() -> None:
    body = json.dumps({"chat_template": "{{ messages['content'] }} {'content': 'x'}", "eos_token": "</s>"})

    assert redact.text(body) == body


def test_the_files_of_a_model_keep_the_spelling_of_tokens_but_no_secret() -> None:
    body = json.dumps({"added_tokens_decoder": {"2": {"content": "</s>"}}, "hf_token": SECRET})

    (raw,) = redact.raws([Raw(source="model", kind="tokenizer_config", body=body.encode())]).raws

    assert json.loads(raw.body) == {"added_tokens_decoder": {"2": {"content": "</s>"}}, "hf_token": redact.HIDDEN}


@pytest.mark.parametrize(
    "line",
    [
        'INFO:     10.9.8.7:5432 - "POST /v1/chat/completions HTTP/1.1" 200 OK',
        'INFO:     2001:db8::7:5432 - "POST /v1/chat/completions HTTP/1.1" 200 OK',
        '10.9.8.7 - bob [10/Oct/2026:13:55:36 -0700] "GET /x HTTP/1.0" 200 2326',
        '2001:db8::7 - - [10/Oct/2026:13:55:36 -0700] "GET /x HTTP/1.0" 200 2326',
        "srv  log_server_r: done request: POST /v1/chat/completions 10.9.8.7 200",
        '[GIN] 2026/01/01 - 00:00:00 | 200 | 1.2s |        10.9.8.7 | POST     "/api/chat"',
        '{"client_ip": "10.9.8.7", "status": 200}',
        "remote_addr=10.9.8.7 status=200",
        "X-Forwarded-For: 10.9.8.7, 10.9.8.6",
        "denied for 10-9-8-7@example.com",
    ],
)
def test_a_caller_goes_from_an_access_line(line: str) -> None:
    shown = redact.text(line)

    assert not re.search(r"10.9.8.\d|2001", shown)
    assert "<client>" in shown


def test_callers_keep_their_number_throughout_a_bundle() -> None:
    line = 'INFO:     {}:{} - "POST /v1/completions HTTP/1.1" 200 OK\n'
    first = line.format("10.0.0.1", 5) + line.format("10.0.0.2", 6) + line.format("10.0.0.1", 7)
    second = line.format("10.0.0.2", 8)

    redacted = redact.raws([Raw(source="logs", kind="lines", body=text.encode()) for text in (first, second)])

    numbers = [re.findall(rb"<client-\d+>", raw.body) for raw in redacted.raws]
    assert numbers == [[b"<client-1>", b"<client-2>", b"<client-1>"], [b"<client-2>"]]
    assert redacted.counts == {"client": 4}


def test_what_is_shown_reads_the_same_before_and_after_a_bundle() -> None:
    line = 'INFO:     10.0.0.1:5 - "POST /v1/completions HTTP/1.1" 200 OK'

    (raw,) = redact.raws([Raw(source="logs", kind="lines", body=line.encode())]).raws

    assert redact.text(raw.body.decode()) == redact.text(line)


def test_every_part_of_a_raw_is_redacted() -> None:
    raw = Raw(
        source="engine",
        kind="metrics",
        target=f"http://u:{SECRET}@h:8000",
        body=f"api_key={SECRET}".encode(),
        error=f"401 for Bearer {SECRET}",
        hint=f"llmedic diagnose http://u:{SECRET}@h:8000",
        meta={"api_key": SECRET, "command": f"--api-key {SECRET}", "window_s": "10"},
    )

    (done,) = redact.raws([raw]).raws

    assert SECRET not in repr(done)
    assert done.meta["window_s"] == "10"
    assert (done.source, done.kind) == ("engine", "metrics")


def test_bytes_that_are_no_text_stay_beside_what_is_hidden() -> None:
    body = b"\xff\xfe\n" + f"HF_TOKEN={SECRET}\n".encode() + b"\x80"

    (raw,) = redact.raws([Raw(source="process", kind="environment", body=body)]).raws

    assert raw.body == b"\xff\xfe\nHF_TOKEN=<redacted>\n\x80"


@pytest.mark.parametrize(
    "name", ["--api-key", "api_key", "HF_TOKEN", "hf-token", "AWS_SECRET_ACCESS_KEY", "password", "apiKey"]
)
def test_names_of_secrets(name: str) -> None:
    assert redact.setting(name, SECRET) == redact.HIDDEN


@pytest.mark.parametrize(
    "name", ["--max-num-seqs", "eos_token", "tokenizer", "ssl_keyfile", "max_tokens", "image_token"]
)
def test_names_of_other_settings(name: str) -> None:
    assert redact.setting(name, "x7") == "x7"


def test_a_long_log_loses_what_it_must_and_nothing_else() -> None:
    line = "INFO 11-30 19:32:49 [loggers.py:271] Engine 000: Avg prompt throughput: 3.0 tokens/s, Running: 2 reqs\n"
    log = line * 2000 + f"Authorization: Bearer {SECRET}\n" + line * 2000

    assert redact.text(log) == line * 2000 + "Authorization: <redacted>\n" + line * 2000


@pytest.mark.parametrize("mark", ["http://", "http://a:", "token: ", "input_value=", "streaming_complete: content="])
def test_a_line_without_end_is_read_once(mark: str) -> None:
    # In the square of its length, this would take minutes.
    line = (mark * (200_000 // len(mark))) + f" HF_TOKEN={SECRET}"

    assert SECRET not in redact.text(line)


def test_of_several_ends_the_right_one_is_taken() -> None:
    cut = f"a input_value={PROMPT}, input_type=str], input_value=2, input_type=int, input_value={PROMPT} no end"
    streamed = f"streaming_complete: content={PROMPT}, chunks=1 {PROMPT}, chunks=9 done"

    assert redact.text(cut).startswith("a input_value=<redacted>, input_type=str], input_value=2, input_type=int")
    assert redact.text(streamed) == "streaming_complete: content=<redacted>, chunks=9 done"
