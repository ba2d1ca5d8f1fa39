#!/usr/bin/env bash
# playground.sh FOLDER TOKENIZER [--in-site]: the playground as a static page, of what was built before: dist, wasm, and
# the tokenizer.json of the tiny model. With --in-site it leads to the first page of the site around it.
set -euo pipefail
out=$(realpath -m "$1") tokenizer=$(realpath "$2") site=${3-}
cd "$(dirname "${BASH_SOURCE[0]}")/.."
rm -rf "$out"
mkdir -p "$out/page/style" "$out/tokentrie/dist" "$out/tokentrie/wasm" "$out/vocab"
cp playground/* "$out"
cp ../../python/tokentrie/serve/page/{dom.js,frame.js,icon.svg} "$out/page"
cp ../../python/tokentrie/serve/page/style/*.css "$out/page/style"
(cd dist && find . -name '*.js' -exec cp --parents -t "$out/tokentrie/dist" {} +)
cp wasm/tokentrie-schema.wasm "$out/tokentrie/wasm"
cp "$tokenizer" "$out/vocab/tokenizer.json"
if [[ $site == --in-site ]]; then
  sed -i 's| hidden>The documentation| >The documentation|' "$out/index.html"
fi
