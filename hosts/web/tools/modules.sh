#!/usr/bin/env bash
# The modules of WebAssembly that tests and the package take, in hosts/web/wasm: `tokentrie.wasm`, without chats
# `tokentrie-core.wasm`, with JSON Schema and Lark `tokentrie-schema.wasm`. What wasm-opt would win is lost, compressed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."
target=${CARGO_TARGET_DIR:-target}
out=hosts/web/wasm
mkdir -p "$out"

# module NAME ARGUMENTS: builds one; it is put in place whole.
module() {
  local name=$1 built=$target/wasm/wasm32-unknown-unknown/web/tokentrie_wasm.wasm
  shift
  # Without room for other addresses in every call: 3 in a hundred, compressed.
  cargo rustc --quiet --profile web --target wasm32-unknown-unknown --target-dir "$target/wasm" -p tokentrie-wasm "$@" \
    -- -C link-arg=--compress-relocations
  cp "$built" "$out/.$name"
  mv "$out/.$name" "$out/$name"
  echo "$out/$name: $(wc -c <"$out/$name") bytes, $(gzip -9 <"$out/$name" | wc -c) by gzip"
}

module tokentrie-core.wasm --no-default-features
module tokentrie.wasm
module tokentrie-schema.wasm --features schema
