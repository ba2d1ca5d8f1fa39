"""Hooks of `mkdocs.yml`: the README is the first page, and links out of `docs/` show what they lead to or name it.

Pictures that are there light and dark follow what a reader chose on the site.
"""

from __future__ import annotations

import posixpath
import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

sys.path.insert(0, str(Path(__file__).parent))
import docs_reference

ROOT = Path(__file__).parents[1]
LINK = re.compile(r"\[([^\]\n]*)\]\(([^)\s#]+)(#[^)\s]*)?\)")
FENCE = re.compile(r"(?<=^```rust),\S+", re.MULTILINE)
"""Attributes of a fence that only rustdoc reads."""
PICTURE = re.compile(r'<picture><source [^>]*srcset="([^"]+)"><img alt="([^"]*)" src="([^"]+)"></picture>')
"""One picture for the dark and one for the light."""
PAGE = ROOT / "python" / "tokentrie" / "serve" / "page"
"""The page of the server, whose look the site has."""
FIRST = {"README.md": "index.md"}
"""Files of the repository that have another name in the site."""
ALWAYS = ["README.md", "CONTRIBUTING.md"]

PLAYGROUND = "**[Try it in this browser](playground/index.html)**: rules, sets and chat templates, token by token."

WORKER = """// Browsers start no Worker from a file: there the script of the search runs in a frame instead.
if (location.protocol === "file:")
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      const inside = frame.contentWindow;
      inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      if (window.__index) inside.__index = window.__index;
      this.ready = new Promise((done, failed) => {
        const script = inside.document.createElement("script");
        Object.assign(script, { src: url, onload: () => done(inside), onerror: failed });
        inside.document.body.append(script);
      });
    }
    postMessage(data) {
      this.ready.then((inside) => inside.dispatchEvent(new MessageEvent("message", { data })));
    }
  };
"""


def outside(source: str, link: str) -> str | None:
    """The file of the repository that a link in another one names, if it is one outside of `docs/`."""
    if re.match(r"[a-z]+:|/", link):
        return None
    path = posixpath.normpath(posixpath.join(posixpath.dirname(source), link))
    return None if path.startswith(("docs/", "..")) else path


def linked(source: str) -> set[str]:
    """Markdown files outside of `docs/` that a file of the repository links to."""
    text = (ROOT / source).read_text(encoding="utf-8")
    found = {outside(source, link[2]) for link in LINK.finditer(text)}
    return {path for path in found if path is not None and path.endswith(".md") and (ROOT / path).is_file()}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the README, the pages outside of `docs/` that pages link to, and what the search needs from disk."""
    pages = [f"docs/{file.src_uri}" for file in files.documentation_pages()]
    for path in sorted({*ALWAYS, *(path for page in [*pages, *ALWAYS] for path in linked(page))}):
        text = (ROOT / path).read_text(encoding="utf-8")
        files.append(File.generated(config, FIRST.get(path, path), content=text))
    made = {"c-reference.md": docs_reference.c_page(), "typescript-reference.md": docs_reference.typescript_page()}
    for name, text in made.items():
        files.append(File.generated(config, name, content=text))
    files.append(File.generated(config, "assets/iframe-worker.js", content=WORKER))
    files.append(File.generated(config, "assets/site.css", abs_src_path=str(Path(__file__).with_name("docs_site.css"))))
    files.append(File.generated(config, "assets/icon.svg", abs_src_path=str(PAGE / "icon.svg")))
    beside = Path(config.site_dir).parent
    for part in ("notebooks", "playground"):  # as `./dev docs` has made them
        for made_file in filter(Path.is_file, sorted((beside / part).rglob("*"))):
            name = made_file.relative_to(beside).as_posix()
            files.append(File.generated(config, name, abs_src_path=str(made_file)))
    return files


def on_page_markdown(markdown: str, page: Any, files: Files, **_: Any) -> str:
    """Leads links to where the site has what they name; other files of the repository are named in words."""
    here = page.file.src_uri
    names = {name: path for path, name in FIRST.items()}
    source = names.get(here, here) if page.file.generated_by else f"docs/{here}"

    def replace(link: re.Match[str]) -> str:
        words, target, anchor = link[1], re.sub(r"\.ipynb$", ".md", link[2]), link[3] or ""
        if re.match(r"[a-z]+:|/", target):
            return link[0]
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
        name = FIRST.get(path, path.removeprefix("docs/"))
        if files.get_file_from_path(name) is not None:
            return f"[{words}]({posixpath.relpath(name, posixpath.dirname(here) or '.')}{anchor})"
        if path.startswith("docs/") or not (ROOT / path).exists():
            return link[0]  # a dead link, which the build tells of
        return words if words.strip("`") == path else f"{words} (`{path}`)"

    if here.startswith("notebooks/"):
        notebook = f"{posixpath.splitext(posixpath.basename(here))[0]}.ipynb"
        return f"{FENCE.sub('', LINK.sub(replace, markdown))}\n[The page as a notebook]({notebook})\n"
    if here == "index.md" and files.get_file_from_path("playground/index.html") is not None:
        title, rest = markdown.split("\n", 1)
        markdown = f"{title}\n\n{PLAYGROUND}\n{rest}"
    markdown = PICTURE.sub(r"![\2](\3#only-light)![\2](\1#only-dark)", markdown)
    return FENCE.sub("", LINK.sub(replace, markdown))
