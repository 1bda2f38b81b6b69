"""What `quantization_config`, or the engine's flag, makes of each weight.

Sources: vLLM 0.33 `model_executor/layers/quantization` (`get_quant_method` and `create_weights` of each method).
Norms, embeddings, routers and output heads stay as they are; so do the modules that the checkpoint's own list names.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, replace

from llmedic.analysis.ledger.geometry import formats
from llmedic.analysis.ledger.geometry.fields import Fields, fault, shown
from llmedic.analysis.ledger.geometry.formats import Stored, grouped
from llmedic.analysis.ledger.geometry.names import Names
from llmedic.analysis.ledger.geometry.tensors import Tensor

ENCODERS = ("vision", "audio")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scheme:
    """How a model is quantised.

    method        as `Geometry.quantization` gives it; "" for none
    groups        which modules are stored how, first match wins; None: every linear layer
    ignored       modules that are not quantised; kept: parts that never are; only: the parts that are ((): all)
    width_known   False: how narrow the weights are stored is not said in words that are known
    online        it happens while a checkpoint of another width is loaded
    """

    method: str = ""
    groups: tuple[tuple[Names | None, Stored], ...] = ()
    ignored: Names = field(default_factory=lambda: Names(()))
    kept: tuple[str, ...] = ()
    only: tuple[str, ...] = ()
    unsure: tuple[str, ...] = ()
    width_known: bool = True
    online: bool = False

    @property
    def for_drafts(self) -> Scheme:
        """The same for draft layers, which stay whole where the checkpoint's list names them."""
        return Scheme(method=self.method) if self.ignored.mention_drafts else self

    def signature(self, layer: int) -> Hashable:
        """Equal layers with the same signature are stored alike."""
        named = tuple(names.signature(layer) for names, _ in self.groups if names is not None)
        return self.ignored.signature(layer), named

    def stored(self, tensor: Tensor, layer: int | None) -> Stored | None:
        """The format of a weight; None: as wide as the model computes."""
        if not tensor.linear or not self.groups or tensor.part in self.kept:
            return None
        if (self.only and tensor.part not in self.only) or self.ignored.match(layer, tensor.path):
            return None
        if tensor.part in ENCODERS and self.ignored.mention_encoders:
            return None
        for names, stored in self.groups:
            if names is None or names.match(layer, tensor.path):
                return stored
        return None


ONLINE: dict[str, Scheme] = {
    "fp8": Scheme(method="fp8", groups=((None, formats.FP8_TENSOR),)),
    "fp8_per_tensor": Scheme(method="fp8", groups=((None, formats.FP8_TENSOR),)),
    "fp8_per_channel": Scheme(method="fp8", groups=((None, formats.FP8_CHANNEL),)),
    "fp8_per_block": Scheme(method="fp8", groups=((None, formats.fp8_block(128, 128)),)),
    "ptpc_fp8": Scheme(method="fp8", groups=((None, formats.FP8_CHANNEL),)),
    "mxfp8": Scheme(method="mxfp8", groups=((None, formats.MXFP8),)),
    "bitsandbytes": Scheme(method="bitsandbytes", groups=((None, formats.NF4),)),
    "experts_int8": Scheme(method="experts_int8", groups=((None, formats.INT8_CHANNEL),), only=("experts",)),
}
"""Quantisation while a 16-bit checkpoint is loaded, by the value of --quantization."""


def scheme_of(config: Fields, text: Fields, flag: str) -> Scheme:
    """How the model is stored on the device: as the checkpoint is, or as the flag makes of it."""
    section = next(
        (found for fields in (config, text) if (found := fields.section("quantization_config", "compression_config"))),
        None,
    )
    flag = "" if flag in ("auto", "none") else flag.lower().replace("_marlin", "")
    if section is not None:
        return _checkpoint(section)
    if not flag:
        return Scheme()
    if flag in ONLINE:
        return replace(ONLINE[flag], online=True)
    return Scheme(
        method=flag,
        unsure=(f"--quantization {flag[:40]} needs a checkpoint that says how it is quantised; this one does not",),
    )


def _checkpoint(section: Fields) -> Scheme:
    method = section.text("quant_method").lower().replace("_", "-")
    nested = section.section("quantization")
    if not method or method.startswith("modelopt"):
        if nested is None and not section.has("quant_algo", "config_groups", "moe_quant_algo"):
            raise fault("quantization_config names no quant_method")
        return _modelopt(nested if nested is not None and nested.has("quant_algo") else section)
    if method not in READERS:
        return Scheme(
            method=method[:40],
            unsure=(_unknown(method),),
            width_known=False,
        )
    return READERS[method](section)


def _listed(section: Fields, *names: str) -> Names:
    return Names(entry for name in names for entry in section.words(name) or ())


def _unknown(method: str) -> str:
    return f"the quantisation {shown(method)} is not known; weights are counted as if it were none"


def _gguf(section: Fields) -> Scheme:
    """Every tensor has a type of its own, which only the file says."""
    del section
    return Scheme(method="gguf", unsure=("a GGUF file's weights are counted as if they were not quantised",),
                  width_known=False)  # fmt: skip


def _fp8(section: Fields) -> Scheme:
    block = section.counts("weight_block_size", length=2, least=1)
    stored = formats.fp8_block(*block) if block else formats.FP8_TENSOR
    return Scheme(
        method="fp8", groups=((None, stored),), ignored=_listed(section, "modules_to_not_convert", "ignored_layers")
    )


def _fbgemm(section: Fields) -> Scheme:
    ignored = _listed(section, "modules_to_not_convert")
    return Scheme(method="fbgemm_fp8", groups=((None, formats.FP8_CHANNEL),), ignored=ignored)


def _bits(section: Fields, *names: str, default: int | None = None) -> int:
    return section.count(*names, default=default, least=1, most=16)


def _group(section: Fields, *names: str, default: int = 128) -> int:
    return section.count(*names, default=default, least=-1)


def _awq(section: Fields) -> Scheme:
    stored = grouped(
        _bits(section, "bits", "w_bit"),
        _group(section, "group_size", "q_group_size"),
        zeros=section.flag("zero_point", default=True),
    )
    return Scheme(
        method="awq", groups=((None, stored),), ignored=_listed(section, "modules_to_not_convert"), kept=ENCODERS
    )


def _gptq(section: Fields) -> Scheme:
    """GPTQ; entries of `dynamic` that begin with "-:" leave a module as it is (gptqmodel)."""
    ordered = section.flag("desc_act")
    stored = grouped(_bits(section, "bits"), _group(section, "group_size"), ordered=ordered)
    dynamic = section.section("dynamic")
    skipped = [f"re:{key[2:]}" for key in (dynamic.values if dynamic else ()) if key.startswith("-:")]
    return Scheme(method="gptq", groups=((None, stored),), ignored=Names(skipped), kept=ENCODERS)


def _auto_round(section: Fields) -> Scheme:
    stored = grouped(_bits(section, "bits"), _group(section, "group_size"), zeros=not section.flag("sym", default=True))
    extra = section.section("extra_config")
    wide = [
        key
        for key, value in (extra.values.items() if extra else ())
        if isinstance(value, dict) and value.get("bits") == 16
    ]
    return Scheme(method="auto-round", groups=((None, stored),), ignored=Names(wide), kept=ENCODERS)


def _bitsandbytes(section: Fields) -> Scheme:
    stored = formats.INT8_CHANNEL if section.flag("load_in_8bit") else formats.NF4
    ignored = _listed(section, "llm_int8_skip_modules")
    return Scheme(method="bitsandbytes", groups=((None, stored),), ignored=ignored)


def _mxfp4(section: Fields) -> Scheme:
    """gpt-oss: the experts alone, padded to the tiles of the usual kernels.

    Marlin and TensorRT-LLM want the hidden size in 256s and the intermediate size in 128s, others less
    (`mxfp4_round_up_hidden_size_and_intermediate_size`).
    """
    del section
    down = Stored(bits=4, columns=32, scale_bytes=1, multiple=(256, 128))
    up = Stored(bits=4, columns=32, scale_bytes=1, multiple=(128, 256))
    return Scheme(method="mxfp4", groups=((Names(("down_proj",)), down), (None, up)), only=("experts",))


def _weights(section: Fields, layout: str) -> Stored | None:
    """The format of one group of compressed-tensors, or of ModelOpt, which writes the same."""
    weights = section.section("weights")
    if weights is None:
        return None
    bits, group = _bits(weights, "num_bits", default=8), _group(weights, "group_size", default=0)
    layout = section.text("format", default=layout)
    floating = weights.text("type", default="int") == "float"
    strategy = weights.text("strategy", default="tensor" if floating and bits == 8 and group < 1 else "")
    if floating and bits == 4:
        return formats.MXFP4 if "mxfp4" in layout or group == 32 else formats.NVFP4
    if "mxfp8" in layout:
        return formats.MXFP8
    if block := weights.counts("block_structure", length=2, least=1):
        return formats.fp8_block(*block)
    if bits == 8 and strategy in ("tensor", "channel"):
        return formats.FP8_TENSOR if strategy == "tensor" else formats.FP8_CHANNEL
    return grouped(
        bits, group, zeros=not weights.flag("symmetric", default=True), ordered=weights.get("actorder") == "group"
    )


def _config_groups(section: Fields) -> tuple[tuple[Names | None, Stored], ...]:
    found = section.section("config_groups")
    layout = section.text("format")
    groups: list[tuple[Names | None, Stored]] = []
    for name in found.values if found else ():
        group = found.section(name) if found else None
        stored = _weights(group, layout) if group else None
        if group is None or stored is None:
            continue
        targets = group.words("targets") or ("Linear",)
        everything = any(target in ("Linear", "FusedMoE") for target in targets)
        groups.append((None if everything else Names(targets), stored))
    return tuple(sorted(groups, key=lambda entry: entry[0] is None))


def _compressed_tensors(section: Fields) -> Scheme:
    groups = _config_groups(section)
    sparse = section.section("sparsity_config")
    unsure: tuple[str, ...] = ()
    if sparse and sparse.text("format", default="dense") != "dense":
        unsure = ("the checkpoint is also sparse; its weights are counted as if they were not",)
    return Scheme(method="compressed-tensors", groups=groups, ignored=_listed(section, "ignore"), unsure=unsure)


ALGORITHMS = {
    "FP8": formats.FP8_TENSOR,
    "FP8_PER_CHANNEL_PER_TOKEN": formats.FP8_CHANNEL,
    "FP8_PB_WO": formats.fp8_block(128, 128),
    "NVFP4": formats.NVFP4,
    "W4A16_NVFP4": formats.NVFP4,
    "NVFP4_AWQ": formats.NVFP4,
    "MXFP8": formats.MXFP8,
    "MXFP4": formats.MXFP4,
    "W4A16_MXFP4": formats.MXFP4,
    "W4A8_MXFP4_FP8": formats.MXFP4,
}


def _modelopt(section: Fields) -> Scheme:
    ignored = _listed(section, "ignore", "exclude_modules")
    algorithm = section.text("quant_algo", "moe_quant_algo").upper()
    layers = section.section("quantized_layers")
    if layers is not None:
        by_format: dict[str, list[str]] = {}
        for name, entry in layers.values.items():
            stored_as = entry.get("quant_algo") if isinstance(entry, Mapping) else ""
            by_format.setdefault(str(stored_as).upper(), []).append(name)
        groups = tuple((Names(names), ALGORITHMS[key]) for key, names in by_format.items() if key in ALGORITHMS)
        return Scheme(method="modelopt", groups=groups, ignored=ignored)
    if algorithm in ALGORITHMS:
        groups_of_all: tuple[tuple[Names | None, Stored], ...] = ((None, ALGORITHMS[algorithm]),)
        return Scheme(method="nvfp4" if "NVFP4" in algorithm else "modelopt", groups=groups_of_all, ignored=ignored)
    if groups_named := _config_groups(section):
        return Scheme(method="modelopt", groups=groups_named, ignored=ignored)
    return Scheme(
        method="modelopt",
        unsure=(_unknown(algorithm),),
        width_known=False,
    )


def _quark(section: Fields) -> Scheme:
    common = section.section("global_quant_config")
    weight = common.section("weight") if common else None
    stored = _quark_format(weight) if weight else None
    unsure = () if stored else (_unknown("quark"),)
    groups = ((None, stored),) if stored else ()
    return Scheme(method="quark", groups=groups, ignored=_listed(section, "exclude"), unsure=unsure)


def _quark_format(weight: Fields) -> Stored | None:
    kind, scheme = weight.text("dtype").lower(), weight.text("qscheme").lower()
    if kind.startswith("fp8"):
        return formats.FP8_CHANNEL if scheme == "per_channel" else formats.FP8_TENSOR
    if kind in ("fp4", "mxfp4"):
        return formats.MXFP4
    if kind in ("int8", "uint8"):
        return formats.INT8_CHANNEL
    if kind in ("int4", "uint4"):
        return grouped(4, _group(weight, "group_size"), zeros=kind == "uint4")
    return None


READERS: dict[str, Callable[[Fields], Scheme]] = {
    "fp8": _fp8,
    "gguf": _gguf,
    "fbgemm-fp8": _fbgemm,
    "awq": _awq,
    "gptq": _gptq,
    "auto-round": _auto_round,
    "intel/auto-round": _auto_round,
    "bitsandbytes": _bitsandbytes,
    "mxfp4": _mxfp4,
    "compressed-tensors": _compressed_tensors,
    "quark": _quark,
}
