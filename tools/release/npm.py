"""The npm package with the C library inside."""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
from pathlib import Path

import papers
from shared import OUT, ROOT, Differs, FaultError, NotHere, run, size

PACKAGE = ROOT / "hosts" / "typescript"
CHOOSES = """
import { Session } from "tokentrie";
const session = await Session.open(process.argv[2]);
try {
  const choice = await session.choose("The sky is ", ["blue", "red and white", "red and black"]);
  console.log(choice.name);
} finally {
  await session.close();
}
"""


def check_npm() -> str:
    """Packed with the library, its licences and bills of materials; installed into an empty folder, it chooses."""
    if not shutil.which("npm"):
        return NotHere("there is no npm")
    papers_of = PACKAGE / "papers"
    shutil.rmtree(papers_of, ignore_errors=True)
    papers_of.mkdir()
    (papers_of / "THIRD-PARTY.txt").write_text(papers.notices("tokentrie-c"), "utf-8")
    (papers_of / "library.cyclonedx.json").write_bytes(papers.bill_of_c())
    bill = run("npm", "sbom", "--omit=dev", "--sbom-format=cyclonedx", "--package-lock-only", cwd=PACKAGE)
    (papers_of / "npm.cyclonedx.json").write_text(json.dumps(papers.settled(bill), indent=1), "utf-8")
    out = OUT / "npm"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    try:
        packed = json.loads(run("npm", "pack", "--json", "--silent", f"--pack-destination={out}", cwd=PACKAGE))[0]
    finally:
        shutil.rmtree(papers_of)  # what tests pack is without them
    archive = out / packed["filename"]
    names = {file["path"] for file in packed["files"]}
    missing = {"papers/THIRD-PARTY.txt", "papers/library.cyclonedx.json", "LICENSE-MIT", "dist/index.js"} - names
    if missing or not any(name.startswith("lib/") for name in names):
        raise FaultError(f"the package lacks {missing or 'the library'}")
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "package.json").write_text('{"type": "module"}', "utf-8")
        run("npm", "install", "--silent", "--no-audit", "--no-fund", archive, cwd=Path(folder))
        (Path(folder) / "program.mjs").write_text(CHOOSES, "utf-8")
        model = next((ROOT / "python" / "tokentrie" / "models").glob("*.gguf"))
        said = run("node", "program.mjs", model, cwd=Path(folder)).strip()
    if said not in ("blue", "red and white", "red and black"):
        raise FaultError(f"the installed package chose {said!r}")
    needs = [name for name in sorted(part["name"] for part in json.loads(bill)["components"]) if "/" not in name]
    library = next((PACKAGE / "lib").rglob("libtokentrie.*")).read_bytes()
    glibc = max((tuple(map(int, found.split(b"."))) for found in re.findall(rb"GLIBC_(\d+\.\d+)", library)), default=())
    line = f"{size(archive)}, {len(names)} files, glibc {'.'.join(map(str, glibc))}; installed, it chooses"
    line += f"; needs {', '.join(needs)}"
    given = os.environ.get("TOKENTRIE_LIB")
    return Differs(f"{line}; the library is {given}, by TOKENTRIE_LIB") if given else line
