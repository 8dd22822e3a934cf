#!/bin/sh
# Holds the NVML collector against `nvidia-smi` on a machine that has a GPU.
set -eu
cd "$(dirname "$0")/.."
nvidia-smi -L
exec cargo test --workspace --locked --lib a_real_gpu -- --ignored --nocapture
