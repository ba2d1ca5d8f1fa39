#!/usr/bin/env bash
# The callbacks under valgrind: no invalid read or write, no definite leak. Their tests bring a llama.cpp written in
# Rust, so that nothing else has to be built. With --linked whole chains of the real one too, after a build of the
# workspace: eval "$(./dev env)" && crates/llama-callbacks/valgrind.sh --linked
#
# Valgrind before 3.25 does not know AVX-512, so the code is built apart without it. The kernels of a llama.cpp that is
# there have it too, which is why the one linked test that loads a model is left out.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
target=${CARGO_TARGET_DIR:-target}
export RUSTFLAGS='-C target-cpu=x86-64-v2' CARGO_TARGET_DIR=$target/valgrind

# build CARGO-ARGUMENTS: the paths of the test binaries
build() {
  cargo test --profile checked --no-run --message-format=json "$@" |
    sed -n 's/.*"executable":"\([^"]*\)".*/\1/p'
}

# watch BINARY HARNESS-ARGUMENTS
watch() {
  printf '\n==> valgrind %s\n' "${1##*/}"
  # Without TERM the test harness does not look for a terminal database, where this valgrind sees errors. What a test
  # harness leaves behind possibly is not ours.
  env -u TERM valgrind --quiet --error-exitcode=9 --leak-check=full --errors-for-leak-kinds=definite,indirect \
    --show-leak-kinds=definite,indirect "$1" --test-threads=1 "${@:2}"
}

binaries=$(build -p llama-callbacks --lib --test tests)
for binary in $binaries; do
  case $binary in
    # Thousands of arrays take minutes here; `callbacks` has its own random walks.
    */tests-*) watch "$binary" --skip agrees_with_the_naive_twin ;;
    *) watch "$binary" ;;
  esac
done
[[ ${1-} == --linked ]] || exit 0

host=$(rustc -vV | sed -n 's/^host: //p')
output=$(ls -t "$target"/checked/build/llama-cpp-sys-2-*/output | head -1)
built=$(cd "${output%/output}/out" && pwd)
# Takes the place of the build script of llama-cpp-sys-2.
cat >"$CARGO_TARGET_DIR/llama.toml" <<TOML
[target.$host.llama]
rustc-link-search = ["$built/lib"]
rustc-link-lib = ["static=ggml-base", "static=ggml-cpu", "static=ggml", "static=llama", "dylib=stdc++"]
rustc-env = { OUT_DIR = "$built" }
TOML
binary=$(build -p llama-sampler --config "$CARGO_TARGET_DIR/llama.toml" --test tests)
watch "$binary" chain:: vectors:: --skip with_grammars
