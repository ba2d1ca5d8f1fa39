#!/usr/bin/env bash
# The modules of WebAssembly that tests and the package take, in hosts/web/wasm: `tokentrie-core.wasm` with sets and
# regular languages, `tokentrie.wasm` with JSON Schema, grammars, forms and chats, too. What wasm-opt would win is lost,
# compressed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."
target=${CARGO_TARGET_DIR:-target}
out=hosts/web/wasm
mkdir -p "$out"

# A standard library that is compiled for size takes a tenth less: its sorts alone are 60 kB, compressed. It needs the
# library's sources, and what cargo does not promise to keep; without either the one that is installed is taken.
std=(-Z build-std=std,panic_abort -Z build-std-features=optimize_for_size)
sources=$(rustc --print sysroot)/lib/rustlib/src/rust/library/std
[[ -d $sources ]] || rustup component add rust-src >/dev/null 2>&1 || true
if [[ -d $sources ]]; then
  export RUSTC_BOOTSTRAP=1
  # A fault then stops the module without a sentence of its own, and the code that writes such sentences is not there.
  if [[ $(cargo -Z help) == *panic-immediate-abort* ]]; then
    std+=(-Z panic-immediate-abort)
    export CARGO_PROFILE_WEB_PANIC=immediate-abort
  fi
else
  echo 'rust-src is not here: modules are a sixth larger than those that are published'
  std=()
fi

# module NAME ARGUMENTS: builds one; it is put in place whole.
module() {
  local name=$1 built=$target/wasm/wasm32-unknown-unknown/web/tokentrie_wasm.wasm
  shift
  # Without room for other addresses in every call: 3 in a hundred, compressed.
  cargo rustc --quiet --profile web --target wasm32-unknown-unknown --target-dir "$target/wasm" -p tokentrie-wasm \
    "${std[@]}" "$@" -- -C link-arg=--compress-relocations
  cp "$built" "$out/.$name"
  mv "$out/.$name" "$out/$name"
  echo "$out/$name: $(wc -c <"$out/$name") bytes, $(gzip -9 <"$out/$name" | wc -c) by gzip"
}

module tokentrie-core.wasm --no-default-features
module tokentrie.wasm
