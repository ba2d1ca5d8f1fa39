#!/usr/bin/env bash
# The tests of the plug under valgrind: no invalid read or write, no definite leak. After a build of the workspace, with
# the same environment: eval "$(./dev env)" && crates/llama-sampler/valgrind.sh
#
# Valgrind before 3.25 does not know AVX-512. So the Rust code is built apart without it, against the llama.cpp that is
# there; its CPU kernels have AVX-512 too, which is why the one test that loads a model is left out.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
host=$(rustc -vV | sed -n 's/^host: //p')
output=$(ls -t target/release/build/llama-cpp-sys-2-*/output | head -1)
built=$PWD/${output%/output}/out

export CARGO_TARGET_DIR=${TOKENTRIE_VALGRIND_TARGET:-/tmp/tokentrie-valgrind} RUSTFLAGS='-C target-cpu=x86-64-v2'
mkdir -p "$CARGO_TARGET_DIR"
# Takes the place of the build script of llama-cpp-sys-2.
cat >"$CARGO_TARGET_DIR/llama.toml" <<TOML
[target.$host.llama]
rustc-link-search = ["$built/lib"]
rustc-link-lib = ["static=ggml-base", "static=ggml-cpu", "static=ggml", "static=llama", "dylib=stdc++"]
rustc-env = { OUT_DIR = "$built" }
TOML
binaries=$(cargo test --config "$CARGO_TARGET_DIR/llama.toml" --release -p llama-sampler --lib --test plug --test chain \
  --test vectors --no-run --message-format=json | sed -n 's/.*"executable":"\([^"]*\)".*/\1/p')

for binary in $binaries; do
  case $binary in
    */llama_sampler-*) which='plug::' ;;
    */chain-*) which='--skip with_grammars' ;;
    *) which='' ;;
  esac
  # Without TERM the test harness does not look for a terminal database, where this valgrind sees errors.
  # shellcheck disable=SC2086  # two words, or none
  env -u TERM valgrind --error-exitcode=9 --leak-check=full --errors-for-leak-kinds=definite \
    "$binary" --test-threads=1 $which
done
