"""Whether a checkpoint is stored as --quantization says: vLLM refuses one that is not.

Sources: vLLM 0.33, get_quant_config in model_executor/model_loader/weight_utils.py (a method that only reads quantised
checkpoints finds no configuration), and _verify_quantization in config/model.py (flag and checkpoint differ).
"""

from __future__ import annotations

from collections.abc import Mapping

from llmedic.model.deployment import Deployment
from llmedic.model.ledger import Problem

STORED = frozenset({
    "awq", "gptq", "marlin", "aqlm", "squeezellm", "compressed-tensors", "modelopt", "modelopt_fp4", "modelopt_mxfp8",
    "modelopt_mixed", "quark", "fbgemm_fp8", "hqq", "moe_wna16", "auto-round", "inc",
})  # fmt: skip
"""Methods that only read weights which are stored so already."""
EXCLUSIVE = frozenset({"awq", "gptq", "fp8", "bitsandbytes"})
"""Methods none of which takes a checkpoint of another of them."""


def problem(deployment: Deployment) -> Problem | None:
    """Why vLLM refuses the checkpoint; None where it does not, or nobody said how it is to be quantised."""
    flags = (flag for flag in deployment.flags if flag.origin != "log")  # a log tells what the engine found, too
    asked = next((flag.value for flag in flags if flag.name == "quantization"), None)
    config = deployment.model.config
    if not isinstance(asked, str) or not config:
        return None
    method, stored = asked.lower().removesuffix("_marlin"), _stored(config)
    if stored is None and method in STORED:
        name = deployment.model.name.rsplit("/", 1)[-1] or "the checkpoint"
        usual = f"{name}-{method.upper()}" if method in ("awq", "gptq") else "one that is"
        text = f"--quantization {asked} reads weights that are stored so, and {name} is not: use {usual}"
    elif stored in EXCLUSIVE and method in EXCLUSIVE and method != stored:
        text = f"--quantization {asked} contradicts the checkpoint, which is stored as {stored}: leave it out"
    else:
        return None
    return Problem(severity="critical", text=text, starts="no")


def _stored(config: Mapping[str, object]) -> str | None:
    """How the checkpoint says that it is quantised: "" where it does not name the method, None where it is not."""
    inner = config.get("text_config")
    for place in (config, inner if isinstance(inner, Mapping) else {}):
        for key in ("quantization_config", "compression_config", "quantization"):
            found = place.get(key)
            if isinstance(found, Mapping) and found:
                return str(found.get("quant_method") or "").lower()
    return None
