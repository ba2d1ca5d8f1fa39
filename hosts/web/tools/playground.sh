#!/usr/bin/env bash
# playground.sh FOLDER MODEL [--in-site]: the playground as a static page, of what was built before: dist, wasm, and the
# folder of the tiny model as transformers.js reads it. With --in-site it leads to the first page of the site around it.
set -euo pipefail
out=$(realpath -m "$1") model=$(realpath "$2") site=${3-}
cd "$(dirname "${BASH_SOURCE[0]}")/.."
rm -rf "$out"
mkdir -p "$out/page/style" "$out/tokentrie/dist" "$out/tokentrie/wasm" "$out/model/onnxruntime"
cp playground/* "$out"
cp ../../python/tokentrie/serve/page/{bars.js,dom.js,frame.js,tokens.js,icon.svg} "$out/page"
cp ../../python/tokentrie/serve/page/style/*.css "$out/page/style"
(cd dist && find . -name '*.js' -exec cp --parents -t "$out/tokentrie/dist" {} +)
cp wasm/tokentrie-schema.wasm "$out/tokentrie/wasm"
cp -r "$model" "$out/model/tiny"
cp node_modules/@huggingface/transformers/{dist/transformers.min.js,LICENSE} "$out/model"
# What runs models on the processor alone; what takes the graphics card, too, is twice as large.
cp node_modules/onnxruntime-web/dist/ort-wasm-simd-threaded.{mjs,wasm} "$out/model/onnxruntime"
if [[ $site == --in-site ]]; then
  sed -i 's| hidden>The documentation| >The documentation|' "$out/index.html"
fi
