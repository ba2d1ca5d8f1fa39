"""Prints the last criterion run, and one of pytest-benchmark, as a dated Markdown record: minimum and median of cases.

The minimum is what the code costs; the median also has what else the machine was doing.

    cargo bench -p tokentrie-benches && python benches/record.py > benches/record/$(date +%F).md
"""

import argparse
import datetime
import json
import os
import platform
import statistics
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def cpu() -> str:
    """The processor's name and how many cores this process may use."""
    info = Path("/proc/cpuinfo")
    names = [line.split(":", 1)[1].strip() for line in info.read_text().splitlines() if line.startswith("model name")]
    return f"{names[0] if names else platform.processor()}, {len(os.sched_getaffinity(0))} cores"


def duration(nanoseconds: float) -> str:
    """Three significant digits with a unit."""
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if nanoseconds >= size:
            return f"{nanoseconds / size:.3g} {unit}"
    return f"{nanoseconds:.3g} ns"


def cases(folder: Path) -> list[tuple[str, float, float, str]]:
    """Name, minimum, median and throughput of every case that criterion left behind."""
    found = []
    for sample in sorted(folder.glob("**/new/sample.json")):
        benchmark = json.loads((sample.parent / "benchmark.json").read_text())
        data = json.loads(sample.read_text())
        times = [time / count for time, count in zip(data["times"], data["iters"], strict=True)]
        size = (benchmark["throughput"] or {}).get("Bytes")
        rate = f"{size / min(times):.1f} GB/s" if size else ""
        found.append((benchmark["full_id"], min(times), statistics.median(times), rate))
    return found


def python_cases(file: Path) -> list[tuple[str, float, float, str]]:
    """The same of what pytest-benchmark saved with `--benchmark-json`."""
    found = []
    for benchmark in json.loads(file.read_text())["benchmarks"]:
        stats = benchmark["stats"]
        found.append((f"python/{benchmark['name']}", 1e9 * stats["min"], 1e9 * stats["median"], ""))
    return sorted(found)


def main() -> None:
    """Writes the record to standard output."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    parser.add_argument("folder", nargs="?", type=Path, default=target / "criterion")
    parser.add_argument("--python", type=Path, help="the file that pytest-benchmark saved with --benchmark-json")
    parser.add_argument("--command", default="./dev bench")
    arguments = parser.parse_args()
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    rustc = subprocess.run(["rustc", "--version"], capture_output=True, text=True)
    print(f"# {datetime.date.today()}, commit {commit.stdout.strip()}\n")
    print(f"- machine: {cpu()}, {platform.system()} {platform.release()}")
    print(f"- {rustc.stdout.strip()}; command: `{arguments.command}`; load at the end: {os.getloadavg()[0]:.1f}\n")
    print("| case | minimum | median | |\n| --- | ---: | ---: | --- |")
    found = cases(arguments.folder) + (python_cases(arguments.python) if arguments.python else [])
    for name, least, median, rate in found:
        print(f"| {name} | {duration(least)} | {duration(median)} | {rate} |")


if __name__ == "__main__":
    main()
