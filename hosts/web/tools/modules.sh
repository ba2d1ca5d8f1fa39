#!/usr/bin/env bash
# The modules of WebAssembly that tests and the package take, in hosts/web/wasm: `tokentrie.wasm` and, with JSON Schema
# and Lark, `tokentrie-schema.wasm`. wasm-opt would take minutes and leave them as large, compressed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."
target=${CARGO_TARGET_DIR:-target}
out=hosts/web/wasm
mkdir -p "$out"

# module NAME ARGUMENTS: builds one; it is put in place whole.
module() {
  local name=$1 built=$target/wasm/wasm32-unknown-unknown/web/tokentrie_wasm.wasm
  shift
  cargo build --quiet --profile web --target wasm32-unknown-unknown --target-dir "$target/wasm" -p tokentrie-wasm "$@"
  cp "$built" "$out/.$name"
  mv "$out/.$name" "$out/$name"
  echo "$out/$name: $(wc -c <"$out/$name") bytes, $(gzip -9 <"$out/$name" | wc -c) by gzip"
}

module tokentrie.wasm
module tokentrie-schema.wasm --features schema
