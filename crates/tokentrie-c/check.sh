#!/usr/bin/env bash
# The C library as C and C++ programs use it: built, measured, tested, installed, and found again.
#
#   crates/tokentrie-c/check.sh            without llama.cpp
#   crates/tokentrie-c/check.sh --quick    the tests from C, on the library that ./dev test has built
#   crates/tokentrie-c/check.sh --llama    with sessions and the examples, on the tiny model; TOKENTRIE_SECOND_LLAMA
#                                          names the shared library of another llama.cpp for examples/cpp
#
# Run it under the variables of ./dev env. What a tool is missing for is not tested, and it says so.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
here=crates/tokentrie-c
target=${CARGO_TARGET_DIR:-target}
[[ $target == /* ]] || target=$PWD/$target
model=$PWD/python/tokentrie/models/tiny.gguf
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
most=6000000
cc=(cc -std=c11 -D_GNU_SOURCE -g -Wall -Wextra -Werror -Iinclude)
libraries=(-lpthread -ldl -lm)

# built_in FOLDER: puts both libraries under the names that programs know into a folder of their own, because another
# build of the same profile would replace them, and names it.
built_in() {
  local folder=$work/$1 file
  mkdir -p "$folder"
  for file in "$target/$1"/libtokentrie_c.{so,a,dylib}; do
    [[ ! -f $file ]] || cp "$file" "$folder/libtokentrie.${file##*.}"
  done
  echo "$folder"
}

say() { printf '\n==> C: %s\n' "$*"; }
fail() { printf 'check.sh: %s\n' "$*" >&2; exit 1; }

# Valgrind before 3.25 does not know AVX-512, nor do all processors that a published library may meet.
level=
[[ $(uname -m) != x86_64 ]] || level='-C target-cpu=x86-64-v2'

# shared_and_static FOLDER PROGRAM ARGUMENTS: the test program against both libraries in the folder.
shared_and_static() {
  local folder=$1 program=$2
  shift 2
  "${cc[@]}" "$here/tests/c/$program.c" -L"$folder" -ltokentrie "${libraries[@]}" -Wl,-rpath,"$folder" \
    -o "$work/$program"
  "$work/$program" "$@"
  "${cc[@]}" "$here/tests/c/$program.c" "$folder/libtokentrie.a" "${libraries[@]}" -lstdc++ -o "$work/$program-static"
  "$work/$program-static" "$@"
  "${cc[@]}" -fsanitize=address,undefined "$here/tests/c/$program.c" -L"$folder" -ltokentrie "${libraries[@]}" \
    -Wl,-rpath,"$folder" -o "$work/$program-sanitized"
  "$work/$program-sanitized" "$@"
}

# examples FOLDER: those that all hosts share, as a program of C and as one of C++.
examples() {
  local source=$here/tests/c/examples
  "${cc[@]}" "$source.c" -L"$1" -ltokentrie "${libraries[@]}" -Wl,-rpath,"$1" -o "$work/examples"
  python3 "$source.py" "$work/examples" "$model"
  c++ -std=c++17 -Wall -Wextra -Werror -Iinclude -x c++ "$source.c" -L"$1" -ltokentrie "${libraries[@]}" \
    -Wl,-rpath,"$1" -o "$work/examples-cpp"
  python3 "$source.py" "$work/examples-cpp" "$model"
}

# install_from FOLDER PREFIX
install_from() {
  cmake -S "$here" -B "$work/install" -DTOKENTRIE_BUILT="$1" >/dev/null
  cmake --build "$work/install" >/dev/null
  cmake --install "$work/install" --prefix "$2" >/dev/null
}

# build_example NAME PREFIX ARGUMENTS
build_example() {
  cmake -S "examples/$1" -B "$work/$1" -DCMAKE_PREFIX_PATH="$2" "${@:3}" >/dev/null
  cmake --build "$work/$1" >/dev/null
}

without_llama() {
  local size built prefix=$work/prefix
  say 'the library without llama.cpp'
  RUSTFLAGS=$level cargo build --profile published -p tokentrie-c
  built=$(built_in published)
  size=$(stat -c %s "$built/libtokentrie.so" 2>/dev/null || stat -f %z "$built/libtokentrie.so")
  echo "$size bytes"
  ((size <= most)) || fail "the library has $size bytes: it may have $most"
  shared_and_static "$built" core
  if command -v valgrind >/dev/null; then
    say "under $(valgrind --version)"
    UNDER_VALGRIND=1 valgrind --quiet --error-exitcode=9 --leak-check=full \
      --errors-for-leak-kinds=definite,indirect --show-leak-kinds=definite,indirect "$work/core-static"
  else
    say 'NOT run under valgrind: it is not here'
  fi

  say 'installed into an empty prefix'
  # Our own build's settings are no business of another's.
  unset CMAKE_PROJECT_INCLUDE
  command -v cmake >/dev/null || { say 'NOT installed: there is no cmake' && return; }
  install_from "$target/published" "$prefix"
  build_example c "$prefix"
  "$work/c/own_loop"
  if command -v pkg-config >/dev/null; then
    local flags
    flags=$(PKG_CONFIG_PATH=$prefix/lib/pkgconfig pkg-config --cflags --libs tokentrie)
    # shellcheck disable=SC2086  # several flags
    cc -std=c11 examples/c/own_loop.c $flags -Wl,-rpath,"$prefix/lib" -o "$work/own_loop"
    "$work/own_loop"
  else
    say 'pkg-config: NOT tested, it is not here'
  fi
}

with_llama() {
  local built prefix=$work/prefix-llama source
  say 'the library with llama.cpp'
  cargo build --release -p tokentrie-c --features llama
  built=$(built_in release)
  shared_and_static "$built" session "$model"
  shared_and_static "$built" ends "$model"
  examples "$built"

  unset CMAKE_PROJECT_INCLUDE
  command -v cmake >/dev/null || { say 'the examples: NOT tested, there is no cmake' && return; }
  say 'examples on the tiny model'
  install_from "$target/release" "$prefix"
  build_example c "$prefix" -DWITH_MODELS=ON
  "$work/c/choose_tool" "$model" 'Wake me at seven'

  if [[ -z ${TOKENTRIE_SECOND_LLAMA-} ]]; then
    say 'examples/cpp: NOT tested, TOKENTRIE_SECOND_LLAMA is not set'
    return
  fi
  source=$(cargo metadata --format-version 1 --locked | python3 -c 'import json, pathlib, sys
packages = json.load(sys.stdin)["packages"]
crate = next(package for package in packages if package["name"] == "llama-cpp-sys-2")
print(pathlib.Path(crate["manifest_path"]).parent / "llama.cpp")')
  build_example cpp "$prefix" -DLLAMA_INCLUDE="$source/include;$source/ggml/include" \
    -DLLAMA_LIBRARY="$TOKENTRIE_SECOND_LLAMA"
  local asked=('The next action is ' REPLY REPLY_THREAD OWNER_REMINDERS STOP)
  (IFS=$'\t' && echo "${asked[*]}") >"$work/chains"
  "$work/cpp/chain" "$model" "${asked[@]}" >>"$work/chains"
  TOKENTRIE_CPP_CHAIN=$work/chains cargo test --release -p llama-sampler --test tests -- cpp_chain:: --nocapture
}

quick() {
  local built
  built=$(built_in checked/deps)
  say 'the library with llama.cpp and debug assertions'
  shared_and_static "$built" core
  shared_and_static "$built" session "$model"
  shared_and_static "$built" ends "$model"
  examples "$built"
}

case ${1-} in
  --quick) quick ;;
  '') without_llama ;;
  --llama) with_llama ;;
  *) fail "no such argument: $1" ;;
esac
