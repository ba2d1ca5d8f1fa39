#!/usr/bin/env bash
# The modules of WebAssembly that tests and the package take, in hosts/web/wasm: `tokentrie.wasm` and, with JSON Schema
# and Lark, `tokentrie-schema.wasm`. With --publish also made smaller by wasm-opt (minutes), as they are published.
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
  if [[ $publish ]]; then
    hosts/web/node_modules/.bin/wasm-opt -Oz --enable-simd --enable-bulk-memory --enable-nontrapping-float-to-int \
      --enable-sign-ext --enable-mutable-globals --enable-reference-types --enable-multivalue "$built" -o "$out/.$name"
  else
    cp "$built" "$out/.$name"
  fi
  mv "$out/.$name" "$out/$name"
  echo "$out/$name: $(wc -c <"$out/$name") bytes, $(gzip -9 <"$out/$name" | wc -c) by gzip"
}

publish=
[[ ${1-} != --publish ]] || publish=1
module tokentrie.wasm
module tokentrie-schema.wasm --features schema
