#!/usr/bin/env bash
# playground.sh FOLDER MODEL [--in-site]: the page of the server without one, as static files, of what was built before:
# dist, wasm, and the folder of the tiny model as transformers.js reads it. With --in-site it leads to the first page of
# the site around it.
set -euo pipefail
out=$(realpath -m "$1") model=$(realpath "$2") site=${3-}
cd "$(dirname "${BASH_SOURCE[0]}")/.."
rm -rf "$out"
mkdir -p "$out/tokentrie/dist" "$out/tokentrie/wasm" "$out/model/onnxruntime"
cp -r ../../python/tokentrie/serve/page "$out/page"
links=''
advice='Browsers load no WebAssembly from a file. In this folder: python -m http.server, then http://localhost:8000'
[[ $site != --in-site ]] || links='<a href="../index.html">The documentation</a>'
told="if (location.protocol === 'file:') document.getElementById('connection').append('$advice')"
sed -e 's|data-backend="server"|data-backend="module"|' -e "s|<!-- links -->.*|$links|" \
  -e "s|</body>|  <script>$told</script>\n  </body>|" "$out/page/index.html" >"$out/index.html"
rm "$out/page/index.html"
(cd dist && find . -name '*.js' -exec cp --parents -t "$out/tokentrie/dist" {} +)
cp wasm/tokentrie.wasm "$out/tokentrie/wasm"
cp -r "$model" "$out/model/tiny"
cp node_modules/@huggingface/transformers/{dist/transformers.min.js,LICENSE} "$out/model"
# What runs models on the processor alone; what takes the graphics card, too, is twice as large.
cp node_modules/onnxruntime-web/dist/ort-wasm-simd-threaded.{mjs,wasm} "$out/model/onnxruntime"
