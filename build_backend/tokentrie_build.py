"""Build backend of tokentrie: maturin, plus the tools that compiling llama.cpp needs.

Besides a C and C++ compiler and cargo, llama.cpp wants cmake, and the generator of its Rust bindings wants libclang.
Where the machine lacks them they come as Python wheels, so nothing here needs root. pip installs such wheels into a
throw-away folder, while cargo and CMake remember where a tool was and build anew when it moves. So each is copied once
into `<cargo target folder>/build-tools`, and every later build, by pip or by cargo, finds it in the same place.

The stub of the module gets the docstrings of what was built: see stubs.py.

A package without llama.cpp (`pip install . -C build-args="--no-default-features"`) asks for none of these.

Variables that the user has set always win.

    python build_backend/tokentrie_build.py --requires    what `pip install --no-build-isolation` needs, one a line
    python build_backend/tokentrie_build.py --document WHEEL    docstrings into the stub of a wheel of maturin's
    eval "$(python build_backend/tokentrie_build.py --env)"    then plain cargo calls share one build with pip
"""

from __future__ import annotations

import ast
import base64
import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import zipfile
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "python" / "tokentrie"
STUB = PACKAGE / "_native.pyi"
MODULES = (".so", ".pyd")
EXE = ".exe" if os.name == "nt" else ""
LIBCLANG_FOLDERS = ("lib", "lib64", "local/lib", "lib/*-linux-gnu", "lib/llvm*/lib", "lib64/llvm*/lib")
LIBCLANG = re.compile(r"libclang(-\d[\d.]*)?\.so(\.\d.*)?")  # not libclang-cpp.so, another library


class MissingTool(SystemExit):
    """A tool that no wheel can bring. As a `SystemExit` it ends pip's hook with one line instead of a traceback."""


def _target_dir() -> Path:
    return ROOT / os.environ.get("CARGO_TARGET_DIR", "target")


def _works(command: str, path: str | None = None) -> bool:
    """Whether `command` starts: version managers leave shims for tools that are not installed."""
    found = shutil.which(command, path=path)
    return found is not None and subprocess.run([found, "--version"], capture_output=True, check=False).returncode == 0


def _system_libclang() -> bool:
    files = (file for folder in LIBCLANG_FOLDERS for file in Path("/usr").glob(f"{folder}/libclang*"))
    return "LIBCLANG_PATH" in os.environ or any(LIBCLANG.fullmatch(file.name) for file in files)


# Wheel: (a file in it that shows where the tool lies, how many folders up the copy starts, does the system have it?)
WHEELS = {
    "cmake": (re.compile(rf"data/bin/cmake{EXE}$"), 2, lambda: "CMAKE" in os.environ or _works("cmake")),
    "ninja": (re.compile(rf"(^|/)ninja{EXE}$"), 0, lambda: "CMAKE_GENERATOR" in os.environ or _works("ninja")),
    "libclang": (re.compile(r"clang/native/libclang\.\w+$"), 1, _system_libclang),
}


def _wheel_file(name: str) -> Path | None:
    """The tool's own file inside an installed wheel; a wrapper script would point back into a throw-away folder."""
    try:
        files = metadata.distribution(name).files or []
    except metadata.PackageNotFoundError:
        return None
    return next((Path(str(file.locate())) for file in files if WHEELS[name][0].search(file.as_posix())), None)


def _tool(name: str) -> Path | None:
    """The folder `build-tools/<name>`, filled from the wheel if need be; None where the wheel is not installed."""
    kept = _target_dir() / "build-tools" / name
    if not kept.exists() and (file := _wheel_file(name)):
        levels = WHEELS[name][1]
        started = kept.with_name(f"{name}.{os.getpid()}")
        started.mkdir(parents=True)
        if levels:
            shutil.copytree(file.parents[levels - 1], started, dirs_exist_ok=True)
        else:
            shutil.copy2(file, started)
        try:
            started.rename(kept)
        except OSError:  # Another build was faster.
            shutil.rmtree(started)
    return kept if kept.exists() else None


def _wanted() -> list[str]:
    """Wheels that must be installed before a build: not kept from an earlier one and not on the system."""
    return [name for name, (_, _, on_system) in WHEELS.items() if not _tool(name) and not on_system()]


def _compiler(variable: str, fallback: str) -> str:
    command = os.environ.get(variable, fallback)
    if not shutil.which(shlex.split(command)[0]):
        raise MissingTool(
            f"tokentrie: no working `{command}`: install a C and C++ compiler "
            "(Debian/Ubuntu: build-essential, Fedora: gcc-c++, macOS: xcode-select --install)"
        )
    return command


def has_llama(config_settings=None) -> bool:
    """Whether a build with these settings of pip compiles llama.cpp. A feature that is named may need it."""
    settings = config_settings or {}
    words = settings.get("maturin.build-args", settings.get("build-args", os.environ.get("MATURIN_PEP517_ARGS", "")))
    words = shlex.split(words) if isinstance(words, str) else words
    named = any(word.startswith(("--features", "--all-features", "-F")) for word in words)
    return "--no-default-features" not in words or named


def environment(llama: bool = True) -> dict[str, str]:
    """The variables to set on top of `os.environ`. Raises `MissingTool` where a compiler or cargo is missing."""
    cc = _compiler("CC", "cc")
    path: list[str] = []
    if not _works("cargo"):
        path = [str(Path(os.environ.get("CARGO_HOME", Path.home() / ".cargo")) / "bin")]
        if not _works("cargo", path[0]):
            raise MissingTool(
                "tokentrie: no working `cargo`: install Rust 1.88 or later from https://rustup.rs (no root needed)"
            )
    # The scripts folder has maturin, where its virtual environment is not activated.
    last = [sysconfig.get_path("scripts"), os.environ.get("PATH", "")]
    if not llama:
        return {"PATH": os.pathsep.join([*path, *last])}
    _compiler("CXX", "c++")
    env: dict[str, str] = {}
    if "CMAKE" not in os.environ and (cmake := _tool("cmake")):
        path.append(str(cmake / "bin"))
    if "CMAKE_GENERATOR" not in os.environ:
        if ninja := _tool("ninja"):
            path.append(str(ninja))
        if ninja or _works("ninja"):
            env["CMAKE_GENERATOR"] = "Ninja"
    if "LIBCLANG_PATH" not in os.environ and (libclang := _tool("libclang")):
        env["LIBCLANG_PATH"] = str(libclang)
    if "BINDGEN_EXTRA_CLANG_ARGS" not in os.environ:
        # A libclang without clang has no compiler headers (stddef.h): lend it the compiler's.
        include = subprocess.check_output([*shlex.split(cc), "-print-file-name=include"], text=True).strip()
        env["BINDGEN_EXTRA_CLANG_ARGS"] = f"-isystem {include}"
    if "CMAKE_PROJECT_INCLUDE" not in os.environ:
        env["CMAKE_PROJECT_INCLUDE"] = str(Path(__file__).with_name("llama_build.cmake"))
    env["PATH"] = os.pathsep.join([*path, *last])
    return env


def _maturin(config_settings):
    os.environ.update(environment(has_llama(config_settings)))
    import maturin

    return maturin


def _needed(config_settings=None) -> list[str]:
    llama = has_llama(config_settings)
    environment(llama)
    return _wanted() if llama else []


get_requires_for_build_wheel = get_requires_for_build_editable = _needed


def get_requires_for_build_sdist(config_settings=None) -> list[str]:
    return []


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    return _maturin(config_settings).prepare_metadata_for_build_wheel(metadata_directory, config_settings)


def prepare_metadata_for_build_editable(metadata_directory, config_settings=None):
    return _maturin(config_settings).prepare_metadata_for_build_editable(metadata_directory, config_settings)


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    _signatures()
    name = _maturin(config_settings).build_wheel(wheel_directory, config_settings, metadata_directory)
    _document_wheel(Path(wheel_directory) / name)
    return name


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    _signatures()
    name = _maturin(config_settings).build_editable(wheel_directory, config_settings, metadata_directory)
    for module in PACKAGE.glob("_native*"):
        if module.suffix in MODULES:
            _document(module, STUB)
    return name


def _signatures() -> None:
    """What is packed where the docstrings of the module cannot be read; an editable package keeps its own."""
    if not STUB.exists():
        shutil.copyfile(ROOT / "crates" / "tokentrie-py" / "_native.pyi", STUB)


def _document(module: Path, stub: Path) -> bool:
    """Puts the docstrings of the built module into the stub; not where this machine cannot load it."""
    command = [sys.executable, str(Path(__file__).with_name("stubs.py")), str(module), str(stub)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        print(f"tokentrie: the stub has no docstrings, the module was not loaded: {done.stderr}", file=sys.stderr)
    return done.returncode == 0


def _document_wheel(wheel: Path) -> None:
    """The same in a wheel."""
    with tempfile.TemporaryDirectory() as folder:
        stub = Path(folder) / "stub.pyi"
        with zipfile.ZipFile(wheel) as packed:
            names = [name for name in packed.namelist() if name.startswith("tokentrie/_native")]
            module = packed.extract(next(name for name in names if Path(name).suffix in MODULES), folder)
        if _document(Path(module), stub):
            rewrite_wheel(wheel, {"tokentrie/_native.pyi": stub.read_bytes()})


def rewrite_wheel(wheel: Path, new: dict[str, bytes]) -> None:
    """Replaces files of a wheel, or adds some, and writes its RECORD accordingly."""
    started = wheel.with_suffix(".started")
    with zipfile.ZipFile(wheel) as packed, zipfile.ZipFile(started, "w", zipfile.ZIP_DEFLATED) as written:
        record = next(name for name in packed.namelist() if name.endswith(".dist-info/RECORD"))
        lines = {line.split(",", 1)[0]: line for line in packed.read(record).decode().splitlines()}
        for name, content in new.items():
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            lines[name] = f"{name},sha256={digest},{len(content)}"
        lines[record] = lines.pop(record)
        old = {entry.filename: entry for entry in packed.infolist() if entry.filename != record}
        for name in [*old, *(name for name in new if name not in old), record]:
            entry = old.get(name) or zipfile.ZipInfo(name)  # of 1980, as maturin has them
            if name not in old:
                entry.external_attr = 0o644 << 16
            content = (
                new[name] if name in new else packed.read(name) if name in old else "\n".join([*lines.values(), ""])
            )
            written.writestr(entry, content, zipfile.ZIP_DEFLATED)
    started.replace(wheel)


def build_sdist(sdist_directory, config_settings=None):
    return _maturin(config_settings).build_sdist(sdist_directory, config_settings)


def main() -> None:
    match sys.argv[1:]:
        case ["--requires"]:
            listed = re.search(r"^requires = (\[.*\])$", (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
            assert listed, "pyproject.toml lists its build requirements in one line"
            print(*ast.literal_eval(listed[1]), *_needed(), sep="\n")
        case ["--document", *wheels] if wheels:
            for wheel in wheels:
                _document_wheel(Path(wheel))
        case ["--env"]:
            for name, value in environment().items():
                print(f"export {name}={shlex.quote(value)}")
        case _:
            raise SystemExit(__doc__)


if __name__ == "__main__":
    main()
