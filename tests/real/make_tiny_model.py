"""Writes a tiny Llama with random weights, a byte-level tokenizer of 4,096 tokens and a chat template.

Random weights are enough: the scheduler, the paged KV cache and the metrics do not care what the tokens mean.
The result is the same on every machine, so a recorded bundle can be repeated.

usage: make_tiny_model.py DIR     (with the Python of the real engine's environment; seconds, offline)
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

VOCABULARY_TOKENS = 4096
CONTEXT_TOKENS = 16384
CHAT_TEMPLATE = "{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}\n{% endfor %}assistant:"


def write_tokenizer(directory: Path) -> None:
    """Trains on Python source, the one English-like text that is surely on the machine."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY_TOKENS,
        special_tokens=["<s>", "</s>", "<pad>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    sources = sorted(Path(transformers.__file__).parent.glob("*.py"))[:40]
    tokenizer.train_from_iterator((path.read_text(errors="ignore") for path in sources), trainer)
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>", pad_token="<pad>")
    fast.chat_template = CHAT_TEMPLATE
    fast.save_pretrained(str(directory))


def write_weights(directory: Path) -> None:
    """Five million parameters with a fixed seed: ten megabytes in bfloat16."""
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=VOCABULARY_TOKENS,
        hidden_size=256,
        intermediate_size=688,
        num_hidden_layers=4,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=64,
        max_position_embeddings=CONTEXT_TOKENS,
        bos_token_id=0,
        eos_token_id=1,
        pad_token_id=2,
        torch_dtype="bfloat16",
    )
    LlamaForCausalLM(config).to(torch.bfloat16).save_pretrained(str(directory))


def main(arguments: list[str]) -> int:
    if len(arguments) != 1:
        print("usage: make_tiny_model.py DIR", file=sys.stderr)
        return 2
    directory = Path(arguments[0])
    directory.mkdir(parents=True, exist_ok=True)
    write_tokenizer(directory)
    write_weights(directory)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
