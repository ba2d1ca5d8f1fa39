#!/usr/bin/env python3
"""A second llama.cpp, as a shared library that knows nothing of ours: crates/llama-sampler/tests/second_llama.rs runs
our sampler inside its chains.

    tools/second_llama.py                                 the source that the crate llama-cpp-sys-2 carries
    tools/second_llama.py --llama-cpp-python 0.3.36       the one inside that version's source distribution on PyPI
    tools/second_llama.py --source FOLDER                 any other

The last line of output is the path of the library. It is built once for each source, and found again from then on.
Needs what the package's own build needs: a C++ compiler and cmake (`eval "$(./dev env)"` brings the latter).
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIBRARY = "libllama.dylib" if sys.platform == "darwin" else "libllama.so"
# Only the library: no programs, no downloads. The libraries find each other in the folder that they lie in.
OPTIONS = {
    "BUILD_SHARED_LIBS": "ON",
    "CMAKE_BUILD_RPATH_USE_ORIGIN": "ON",
    "CMAKE_BUILD_TYPE": "Release",
    "GGML_NATIVE": "ON",
    "GGML_OPENMP": "OFF",
    "LLAMA_BUILD_APP": "OFF",
    "LLAMA_BUILD_COMMON": "OFF",
    "LLAMA_BUILD_EXAMPLES": "OFF",
    "LLAMA_BUILD_SERVER": "OFF",
    "LLAMA_BUILD_TESTS": "OFF",
    "LLAMA_BUILD_TOOLS": "OFF",
    "LLAMA_CURL": "OFF",
    "LLAMA_OPENSSL": "OFF",
}


def target_folder() -> Path:
    return ROOT / os.environ.get("CARGO_TARGET_DIR", "target")


def of_the_crate() -> tuple[str, Path]:
    """The name of the source that our own build links, and its folder."""
    command = ["cargo", "metadata", "--format-version", "1", "--locked"]
    packages = json.loads(subprocess.check_output(command, cwd=ROOT))["packages"]
    crate = next(package for package in packages if package["name"] == "llama-cpp-sys-2")
    return f"llama-cpp-sys-2 {crate['version']}", Path(crate["manifest_path"]).parent / "llama.cpp"


def of_llama_cpp_python(version: str, folder: Path) -> Path:
    """The llama.cpp of that source distribution, unpacked into `folder`."""
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", "download", "--no-deps"]
    command += ["--no-binary", "llama-cpp-python", "--dest", str(folder), f"llama-cpp-python=={version}"]
    subprocess.run(command, check=True, stdout=sys.stderr)
    archive = next(folder.glob("*.tar.gz"))
    with tarfile.open(archive) as packed:
        inner = [member for member in packed.getmembers() if "/vendor/llama.cpp/" in member.name]
        # Python 3.10 and 3.11 know filters only since late releases.
        safe = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
        packed.extractall(folder, inner, **safe)
    return next(folder.glob("*/vendor/llama.cpp"))


def build(source: Path, folder: Path, jobs: int) -> None:
    """Leaves the shared libraries of `source` in `folder`/lib."""
    cmake = os.environ.get("CMAKE", "cmake")
    generator = ["-G", "Ninja"] if shutil.which("ninja") and "CMAKE_GENERATOR" not in os.environ else []
    options = [f"-D{name}={value}" for name, value in OPTIONS.items()]
    made = folder / "build"
    # Folders of files change; the compiler's warnings are the other project's.
    quiet = ["-Wno-dev", "-DCMAKE_C_FLAGS=-w", "-DCMAKE_CXX_FLAGS=-w"]
    configure = [cmake, *generator, *quiet, *options, "-S", str(source), "-B", str(made)]
    compile_ = [cmake, "--build", str(made), "--target", "llama", "--parallel", str(jobs)]
    for command in (configure, compile_):
        subprocess.run(command, check=True, stdout=sys.stderr)
    libraries = next(made.rglob(LIBRARY)).parent
    shutil.rmtree(folder / "lib", ignore_errors=True)
    shutil.copytree(libraries, folder / "lib", symlinks=True)
    shutil.rmtree(made)


def fields_of_table(source: Path) -> int:
    """Returns the number of callbacks in the table of this version."""
    header = (source / "include" / "llama.h").read_text(encoding="utf-8")
    table = re.search(r"struct llama_sampler_i \{(.*?)\n\s*\};", header, re.DOTALL)
    if table is None:
        sys.exit(f"{source}: include/llama.h has no table of callbacks")
    return len(re.findall(r"\(\s*\*\s*\w+\s*\)\s*\(", re.sub(r"//.*", "", table[1])))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--llama-cpp-python", metavar="VERSION")
    which.add_argument("--source", type=Path, metavar="FOLDER", help="a checkout of llama.cpp")
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="default: target/second-llama or a name beside it")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()

    if options.llama_cpp_python:
        name, source = f"llama-cpp-python {options.llama_cpp_python}", None
        suffix = f"-python-{options.llama_cpp_python}"
    elif options.source:
        name, source = str(options.source.resolve()), options.source
        suffix = "-other"
    else:
        (name, source), suffix = of_the_crate(), ""
    folder: Path = (options.out or target_folder() / f"second-llama{suffix}").resolve()
    library, note = folder / "lib" / LIBRARY, folder / "built-from"
    stamp = json.dumps({"source": name, "options": OPTIONS}, indent=1)
    if not (library.exists() and note.exists() and note.read_text(encoding="utf-8") == stamp):
        folder.mkdir(parents=True, exist_ok=True)
        note.unlink(missing_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as unpacked:
            if source is None:
                source = of_llama_cpp_python(options.llama_cpp_python, Path(unpacked))
            print(f"{name}: its table has {fields_of_table(source)} callbacks", file=sys.stderr)
            build(source, folder, options.jobs)
        note.write_text(stamp, encoding="utf-8")
    print(library)


if __name__ == "__main__":
    main()
