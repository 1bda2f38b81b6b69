"""Folders and files of models: as downloaded, in part, and as something else."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from llmedic.collect import bundle, modelfiles
from llmedic.errors import InputError
from llmedic.model.deployment import ModelFacts
from llmedic.model.evidence import Gap
from llmedic.model.raw import Raw

if TYPE_CHECKING:
    from tests.collect.modelfiles.conftest import Builder

CONFIG = {"model_type": "llama", "hidden_size": 8, "num_hidden_layers": 2}
WEIGHTS = {"model.layers.0.mlp.up_proj.weight": ("BF16", [4, 8])}
POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"


def facts(path: Path) -> ModelFacts:
    return modelfiles.read(modelfiles.capture(path)).deployment.model


def gaps(path: Path) -> tuple[Gap, ...]:
    return modelfiles.read(modelfiles.capture(path)).gaps


def whole(model: Builder) -> Path:
    model.json("config.json", CONFIG)
    model.safetensors(WEIGHTS)
    return model.folder


def test_a_folder_as_downloaded(model: Builder) -> None:
    whole(model)
    model.json("generation_config.json", {"temperature": 0.6, "eos_token_id": [1, 2]})
    eos = {"content": "</s>", "lstrip": False}
    added = {"0": {"content": "<unk>"}}
    model.json("tokenizer_config.json", {"eos_token": eos, "chat_template": "You are", "added_tokens_decoder": added})
    found = facts(model.folder)
    assert found.name == model.folder.name
    assert found.config == {
        **CONFIG,
        "generation_config": {"temperature": 0.6, "eos_token_id": [1, 2]},
        "tokenizer_config": {"eos_token": "</s>", "chat_template": True},
    }
    assert [(group.name, group.layer, group.bytes) for group in found.tensors] == [
        ("model.layers.{}.mlp.up_proj.weight", 0, 64)
    ]
    assert gaps(model.folder) == ()


def test_no_prompt_and_no_secret_is_kept(model: Builder) -> None:
    model.json("config.json", {**CONFIG, "hub": {"token": "hf_secret", "eos_token": "</s>"}, "api_key": "secret"})
    model.safetensors(WEIGHTS)
    model.json("tokenizer_config.json", {"chat_template": "You are Bob", "eos_token": "x" * 500})
    assert facts(model.folder).config == {
        **CONFIG,
        "hub": {"eos_token": "</s>"},
        "tokenizer_config": {"eos_token": "x" * 200, "chat_template": True},
    }
    assert b"Bob" not in b"".join(raw.body for raw in modelfiles.capture(model.folder))


def test_a_bundle_tells_the_same(model: Builder, tmp_path: Path) -> None:
    folder = tmp_path / "gguf"
    folder.mkdir()
    whole(model)
    type(model)(folder).gguf(
        {"general.architecture": "llama", "llama.block_count": 1, "tokenizer.ggml.eos_token_id": 2, "general.url": "u"},
        {"blk.0.attn_k.weight": ("Q8_0", [32, 2])},
    )
    for place in (model.folder, folder):
        raws = modelfiles.capture(place)
        kept = tmp_path / f"{place.name}.zip"
        bundle.write(kept, raws, now=0, window_s=1)
        assert modelfiles.read(bundle.read_bundle(kept)) == modelfiles.read(raws)


@pytest.mark.parametrize(
    ("file", "content", "expected"),
    [
        ("quantize_config.json", {"bits": 4}, {"quant_method": "gptq", "bits": 4}),
        ("quant_config.json", {"w_bit": 4}, {"quant_method": "awq", "w_bit": 4}),
        ("quant_config.json", {"quant_method": "other"}, {"quant_method": "other"}),
        (
            "hf_quant_config.json",
            {"producer": {"name": "modelopt"}, "quantization": {"quant_algo": "FP8", "kv_cache_quant_algo": "FP8"}},
            {"quant_method": "modelopt", "quant_algo": "FP8", "kv_cache_quant_algo": "FP8"},
        ),
    ],
)
def test_a_quantisation_has_a_file_of_its_own(
    model: Builder, file: str, content: dict[str, object], expected: dict[str, object]
) -> None:
    folder = whole(model)
    model.json(file, content)
    assert facts(folder).config["quantization_config"] == expected
    model.json("config.json", {**CONFIG, "quantization_config": {"quant_method": "fp8"}})
    assert facts(folder).config["quantization_config"] == {"quant_method": "fp8"}


def test_shards_with_and_without_an_index(model: Builder) -> None:
    model.json("config.json", CONFIG)
    names = [f"model-0000{number}-of-00003.safetensors" for number in (1, 2, 3)]
    for number, name in enumerate(names):
        model.safetensors({f"model.layers.{number}.w": ("F16", [2])}, name)
    assert len(facts(model.folder).tensors) == 3
    model.json("model.safetensors.index.json", {"metadata": {}, "weight_map": dict(zip("abc", names, strict=True))})
    model.safetensors({"of.mistral": ("F16", [2])}, "consolidated.safetensors")
    model.safetensors({"lora": ("F16", [2])}, "adapter_model.safetensors")
    assert len(facts(model.folder).tensors) == 3
    assert len(facts(model.folder / names[1]).tensors) == 3
    (model.folder / names[2]).unlink()
    (gap,) = gaps(model.folder)
    assert gap.what == "model weights"
    assert f"shard 3 of 3 is missing: {names[2]}" in gap.why
    assert "computed from config.json" in gap.how
    assert facts(model.folder).tensors == ()
    (model.folder / "model.safetensors.index.json").unlink()
    (model.folder / names[0]).unlink()
    assert f"2 of 3 shards are missing, first {names[0]}" in gaps(model.folder)[0].why
    with pytest.raises(InputError, match="2 of 3 shards are missing"):
        modelfiles.capture(model.folder / names[1])


@pytest.mark.parametrize(
    "index",
    [[], {"weight_map": []}, {"weight_map": {}}, {"weight_map": {"a": "../../etc/passwd"}}, {"weight_map": {"a": "."}}],
)
def test_an_index_that_is_none(model: Builder, index: object) -> None:
    folder = whole(model)
    model.json("model.safetensors.index.json", index)
    assert "model.safetensors.index.json: " in gaps(folder)[0].why


def test_a_pointer_or_a_cut_file_is_a_gap_beside_a_config_and_an_error_without(model: Builder) -> None:
    folder = whole(model)
    model.file("model.safetensors", POINTER)
    (gap,) = gaps(folder)
    assert "this is a Git LFS pointer" in gap.why
    assert gap.how.startswith("git lfs pull; until then the weights are computed from config.json")
    (folder / "config.json").unlink()
    with pytest.raises(InputError, match="this is a Git LFS pointer") as raised:
        modelfiles.capture(folder)
    assert raised.value.hint == "git lfs pull"


def test_a_config_alone(model: Builder) -> None:
    path = model.json("config.json", CONFIG)
    for place in (model.folder, path):
        assert facts(place) == ModelFacts(name=model.folder.name, config=CONFIG)
        (gap,) = gaps(place)
        assert gap.how.startswith("the weights are computed from config.json")


def test_weights_alone(model: Builder) -> None:
    path = model.safetensors(WEIGHTS)
    for place in (model.folder, path):
        found = modelfiles.read(modelfiles.capture(place))
        assert (len(found.deployment.model.tensors), found.deployment.model.config) == (1, {})
        assert found.gaps[0].why == "no config.json beside the weights"


def test_a_file_in_a_folder_with_a_config(model: Builder) -> None:
    whole(model)
    assert facts(model.folder / "model.safetensors").config == CONFIG


def test_pytorch_files_show_their_size_only(model: Builder) -> None:
    model.json("config.json", CONFIG)
    for number in (1, 2):
        model.file(f"pytorch_model-0000{number}-of-00002.bin", b"PK\3\4", 96)
    model.file("training_args.bin", b"PK\3\4")
    found = facts(model.folder).tensors
    assert [(group.dtype, group.parameters, group.bytes) for group in found] == [("", 0, 100), ("", 0, 100)]
    assert facts(model.folder / "training_args.bin").tensors[0].bytes == 4
    (model.folder / "pytorch_model-00001-of-00002.bin").unlink()
    assert "shard 1 of 2 is missing" in gaps(model.folder)[0].why


def test_the_cache_of_hugging_face(tmp_path: Path, model: Builder) -> None:
    repository = tmp_path / "models--org--Tiny-8B"
    for revision in ("abc", "def"):
        (repository / "snapshots" / revision).mkdir(parents=True)
        type(model)(repository / "snapshots" / revision).json("config.json", {**CONFIG, "revision": revision})
    with pytest.raises(InputError, match="2 revisions in it"):
        modelfiles.capture(repository)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text("def\n")
    found = facts(repository)
    assert (found.name, found.config["revision"]) == ("org/Tiny-8B", "def")
    assert facts(repository / "snapshots" / "abc").name == "org/Tiny-8B"


def test_a_gguf_file_and_its_parts(model: Builder) -> None:
    metadata = {"general.architecture": "llama", "llama.block_count": 2, "split.count": 2}
    for number in (1, 2):
        tensors = {f"blk.{number - 1}.ffn_up.weight": ("Q8_0", [32, 2])}
        model.gguf(metadata, tensors, f"tiny-Q8_0-0000{number}-of-00002.gguf")
    model.gguf({"general.architecture": "clip"}, {}, "mmproj-tiny.gguf")
    for place in (model.folder, model.folder / "tiny-Q8_0-00002-of-00002.gguf"):
        found = facts(place)
        assert found.name == "tiny-Q8_0"
        assert found.config["num_hidden_layers"] == 2
        assert [group.layer for group in found.tensors] == [0, 1]
    (model.folder / "tiny-Q8_0-00001-of-00002.gguf").rename(model.folder / "first.gguf")
    with pytest.raises(InputError, match=r"shard 1 of 2 is missing: tiny-Q8_0-00001-of-00002\.gguf"):
        modelfiles.capture(model.folder / "tiny-Q8_0-00002-of-00002.gguf")
    with pytest.raises(InputError, match="one of 2 parts, whose names do not show"):
        modelfiles.capture(model.folder / "first.gguf")
    with pytest.raises(InputError, match=r"2 models in it: first\.gguf, tiny"):
        modelfiles.capture(model.folder)
    with pytest.raises(InputError, match="an image encoder, not a language model"):
        modelfiles.capture(model.folder / "mmproj-tiny.gguf")


def test_a_config_wins_over_the_metadata_beside_it(model: Builder) -> None:
    model.json("config.json", CONFIG)
    model.gguf({"general.architecture": "qwen3", "qwen3.block_count": 9, "general.file_type": 15}, {"w": ("F32", [1])})
    found = facts(model.folder)
    assert (found.config["model_type"], found.config["num_hidden_layers"]) == ("llama", 2)
    assert found.config["quantization_config"] == {"quant_method": "gguf", "file_type": "Q4_K_M"}
    assert found.tensors[0].name == "w"


def test_the_store_of_ollama(model: Builder) -> None:
    digest = "0" * 64
    (model.folder / "blobs").mkdir()
    model.gguf({"general.architecture": "llama", "llama.block_count": 3}, {"w": ("F32", [1])}, f"blobs/sha256-{digest}")
    manifest = model.folder / "manifests" / "registry" / "library" / "llama3" / "8b"
    manifest.parent.mkdir(parents=True)
    layers = [
        {"mediaType": "application/vnd.ollama.image.template", "digest": f"sha256:{'1' * 64}", "size": 1},
        {"mediaType": "application/vnd.ollama.image.model", "digest": f"sha256:{digest}", "size": 1},
    ]
    manifest.write_text(json.dumps({"schemaVersion": 2, "layers": layers}))
    for place in (model.folder, manifest):
        found = facts(place)
        assert (found.name, found.config["num_hidden_layers"]) == ("llama3:8b", 3)
    assert facts(model.folder / "blobs" / f"sha256-{digest}").config["num_hidden_layers"] == 3
    (manifest.parent / "70b").write_text("[]")
    with pytest.raises(InputError, match="2 models in it: llama3:70b, llama3:8b"):
        modelfiles.capture(model.folder)
    with pytest.raises(InputError, match="is no manifest of Ollama"):
        modelfiles.capture(manifest.parent / "70b")
    layers[1]["digest"] = "sha256:../../../etc/passwd"
    manifest.write_text(json.dumps({"layers": layers}))
    with pytest.raises(InputError, match="names 0 models"):
        modelfiles.capture(manifest)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "is empty"),
        (b" \n", "is empty"),
        (b"<!DOCTYPE html><html>", "is a web page"),
        (b"{", "is not JSON"),
        (b"\xff\xfe{\x00}\x00", "is not UTF-8"),
        (b"[1]", "holds no JSON object"),
        (b"null", "holds no JSON object"),
        (b"[" * 100_000, "is nested without end"),
        (b'{"hidden_size": ' + b"9" * 5000 + b"}", "is not JSON"),
        (b'{"model_type": "llama", "hidden_size": NaN}', "holds NaN"),
        (b'{"model_type": "llama", "hidden_size": 1, "hidden_size": 2}', "names 'hidden_size' twice"),
        (b"{}", "names no model_type"),
        (b'{"services": []}', "names no model_type"),
        (b'{"build_config": {}, "pretrained_config": {}}', "TensorRT-LLM engine"),
        (POINTER, "Git LFS pointer"),
    ],
)
def test_a_config_that_is_none(model: Builder, content: bytes, why: str) -> None:
    model.safetensors(WEIGHTS)
    path = model.file("config.json", content)
    for place in (model.folder, path):
        with pytest.raises(InputError, match=r"config\.json: ") as raised:
            modelfiles.capture(place)
        assert why in raised.value.message
        assert len(raised.value.message) < 300
        assert raised.value.hint


@pytest.mark.parametrize(
    ("content", "key", "value"),
    [
        (b'\xef\xbb\xbf{"model_type": "llama"}', "model_type", "llama"),
        (b'{"model_type": "mamba2", "time_step_limit": [0.0, Infinity]}', "time_step_limit", [0.0, float("inf")]),
        (b'{"model_type": "llama", "vocab_size": 5, "vocab_size": 5}', "vocab_size", 5),
    ],
)
def test_a_config_that_is_odd_and_right(model: Builder, content: bytes, key: str, value: object) -> None:
    assert facts(model.file("config.json", content)).config[key] == value


def test_a_config_without_end(model: Builder) -> None:
    path = model.file("config.json", b"{", hole=1 << 40)
    with pytest.raises(InputError, match="larger than 16 MiB"):
        modelfiles.capture(path)


def test_another_file_that_is_broken_is_a_gap(model: Builder) -> None:
    folder = whole(model)
    model.file("generation_config.json", b"<html>")
    assert "is a web page" in gaps(folder)[0].why
    assert facts(folder).config == CONFIG


@pytest.mark.parametrize(
    ("files", "why"),
    [
        ({}, "an empty folder"),
        ({"README.md": b""}, "holds no weights"),
        ({"adapter_config.json": b"{}", "adapter_model.safetensors": b""}, "a LoRA adapter"),
        ({"model_index.json": b"{}"}, "a diffusion pipeline"),
        ({"model.onnx": b""}, "model.onnx is an ONNX model, which is not read"),
        ({"rank0.engine": b""}, "rank0.engine is a TensorRT engine"),
        ({"tf_model.h5": b""}, "TensorFlow weights"),
    ],
)
def test_folders_of_something_else(model: Builder, files: dict[str, bytes], why: str) -> None:
    for name, content in files.items():
        model.file(name, content)
    with pytest.raises(InputError) as raised:
        modelfiles.capture(model.folder)
    assert why in raised.value.message
    assert raised.value.hint


def test_files_of_something_else(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("hello")
    for place in (path, tmp_path / "nowhere", Path("/dev/zero"), Path("a\0b"), Path("x" * 5000)):
        with pytest.raises(InputError) as raised:
            modelfiles.capture(place)
        assert raised.value.hint


def test_links_pipes_and_closed_doors(model: Builder) -> None:
    whole(model)
    model.safetensors({"w": ("F16", [1])}, "blob")
    (model.folder / "model.safetensors").unlink()
    (model.folder / "model.safetensors").symlink_to("blob")
    assert facts(model.folder).tensors[0].name == "w"
    (model.folder / "model.safetensors").unlink()
    (model.folder / "model.safetensors").symlink_to("model.safetensors")
    assert "Too many levels of symbolic links" in gaps(model.folder)[0].why
    (model.folder / "config.json").unlink()
    os.mkfifo(model.folder / "config.json")
    for place in (model.folder, model.folder / "config.json"):
        with pytest.raises(InputError, match="is a pipe, not a file of a model"):
            modelfiles.capture(place)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read(model: Builder) -> None:
    whole(model)
    (model.folder / "config.json").chmod(0)
    with pytest.raises(InputError, match="Permission denied"):
        modelfiles.capture(model.folder)


def test_a_damaged_record_is_a_gap() -> None:
    for kind, body in (("tensors", b"[]"), ("config", b"{"), ("gguf", b"\xff"), ("quantization", b"1")):
        found = modelfiles.read([Raw(source="model", kind=kind, target="m", body=body)])
        assert found.gaps[0].why.startswith("the record is damaged")


def test_replicas_serve_one_model() -> None:
    raws = [
        Raw(source="model", kind="config", target=name, body=b'{"model_type": "%s"}' % name.encode())
        for name in ("a", "b")
    ]
    assert modelfiles.read(raws).deployment.model == ModelFacts(name="a", config={"model_type": "a"})


@given(
    st.dictionaries(
        st.sampled_from(["config.json", "model.safetensors", "m.gguf", "tokenizer_config.json"]), st.binary(max_size=80)
    )
)
@example({"config.json": b'{"model_type": 1}', "m.gguf": b"GGUF"})
def test_any_folder(tmp_path_factory: pytest.TempPathFactory, files: dict[str, bytes]) -> None:
    folder = tmp_path_factory.mktemp("any")
    for name, content in files.items():
        (folder / name).write_bytes(content)
    with contextlib.suppress(InputError):
        modelfiles.read(modelfiles.capture(folder))
