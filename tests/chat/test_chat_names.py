"""Where a name or a recipient is written no control token may come, and none may change what it is.

A control token is text nowhere but where text may stand. The replies are what each template itself writes for a call.
"""

from __future__ import annotations

import re
import warnings
from typing import Any

import pytest
from test_chat_law import MARKER, SMALL, SMALLEST, TEMPLATES, TRIED, spelled, vocabulary
from tokentrie import ChatFormat, Sampler, TemplateError, TokenTrieError, Vocab
from tokentrie.errors import TokenTrieWarning

NAME = "ring_twice"
TOOLS: list[dict[str, Any]] = [
    {
        "type": "function",
        "function": {
            "name": name,
            "description": "Does it.",
            "parameters": {"type": "object", "properties": {"times": {"type": "integer"}}, "required": ["times"]},
        },
    }
    for name in (NAME, "allow", "analysis_of")
]


def call(form: ChatFormat) -> tuple[str, str] | None:
    """What begins the turn, and the reply that goes on from it with a call; None where the template writes none."""
    user = {"role": "user", "content": "Go."}
    function = {"name": NAME, "arguments": {"times": 2}}
    calls = [{"id": "call00001", "type": "function", "function": function}]
    for thought in ({}, {"reasoning_content": "Hm."}):
        reply = {"role": "assistant", "content": "", "tool_calls": calls} | thought
        try:
            begun = form.prompt([user], TOOLS).generation_prompt
            asked, whole = (form.render(m, TOOLS, add_generation_prompt=False) for m in ([user], [user, reply]))
        except TemplateError:
            return None  # Some want the result of the call, too.
        # A turn that the prompt begins to think in goes on with what is thought.
        if whole.startswith(asked + begun) and NAME in whole[len(asked) :]:
            rest = whole[len(asked + begun) :]
            end = form.analysis.reasoning.end.strip()
            if form.analysis.reasoning.mode != "opened-by-prompt" or end in rest:
                return begun, rest
    return None


def with_markers_whole(vocab: Vocab, control: dict[bytes, int], text: bytes) -> list[int]:
    """A text in the longest tokens, its markers as control tokens where there are such."""
    markers = b"|".join(re.escape(piece) for piece in sorted(control, key=len, reverse=True))
    parts = re.split(b"(" + markers + b")", text) if control else [text]
    return [token for part in parts for token in ([control[part]] if part in control else spelled(vocab, part))]


@pytest.mark.parametrize(("name", "template", "with_markers"), TRIED)
def test_names_and_recipients_hold_no_control_tokens(name: str, template: str, with_markers: bool) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TokenTrieWarning)
        vocab = vocabulary(name, template if with_markers else None)
        form = ChatFormat(TEMPLATES[template].read_text("utf-8"), vocab)
        written = call(form) if form.analysis.calls else None
        if not written:
            pytest.skip("it renders no calls")
        begun, reply = written
        control = {vocab[token]: token for token in vocab.control if vocab[token]}
        held = 0
        for choice in ("auto", "required", NAME):
            constraint = form.constraint(TOOLS, vocab, tool_choice=choice, generation_prompt=begun)
            starts = [place for place in range(len(reply)) if reply.startswith(NAME, place)]
            for place in [start + more for start in starts for more in range(len(NAME))]:
                sampler = Sampler(vocab, constraint)
                told = f"after {reply[:place]!r}, begun by {begun!r}, {choice}"
                try:
                    sampler.accept(with_markers_whole(vocab, control, reply[:place].encode()))
                except TokenTrieError:
                    # Where a call must come, what a template writes before it may be refused.
                    assert choice != "auto", told
                    break
                allowed = set(sampler.allowed().tolist())
                if allowed & set(vocab.eog):
                    continue  # It may be text.
                held += 1
                wrong = [vocab[token] for token in allowed if vocab[token] in control]
                assert not wrong, f"{wrong[:5]} may come {told}"
                wrong = [vocab[token] for token in allowed if not may_go_on(form, begun + reply[:place], vocab[token])]
                assert not wrong, f"{wrong[:5]} may come {told}"
        assert held, f"no name in {reply!r} is held"


def may_go_on(form: ChatFormat, text: str, piece: bytes) -> bool:
    """Whether a token goes on with a name, or with a recipient that is no tool's."""
    names = [tool["function"]["name"] for tool in TOOLS]
    begun = max((NAME[:size] for size in range(len(NAME)) if text.endswith(NAME[:size])), key=len)
    rests = [name[len(begun) :].encode() for name in names if name.startswith(begun)]
    bare = piece if begun else piece.lstrip()
    if any(rest.startswith(bare) or bare.startswith(rest) for rest in rests):
        return True
    content, reasoning = form.analysis.content, form.analysis.reasoning
    for marker in (content.start, *content.other_starts, reasoning.start):
        starts = [size for size in range(1, len(marker)) if text.endswith(marker[:size])]
        rests = [marker[size:].encode() for size in starts]
        if any(rest.startswith(piece) or piece.startswith(rest) for rest in rests):
            return True
    return False


@pytest.mark.skipif(not SMALL.is_dir(), reason="only a checkout has the small templates")
def test_most_templates_show_a_call() -> None:
    shown = [name for name, path in TEMPLATES.items() if call(ChatFormat(path.read_text("utf-8")))]
    assert len(shown) > len(TEMPLATES) * 2 // 3, sorted(set(TEMPLATES) - set(shown))
    assert 2 * len(TEMPLATES) == SMALLEST


@pytest.mark.parametrize("template", ["channels", "openai-gpt-oss-120b", "recipients", "muse-glimmer"])
def test_a_header_holds_no_control_token_but_its_markers(template: str) -> None:
    if template not in TEMPLATES:
        pytest.skip("no folder with real templates")
    vocab = vocabulary("bytes", template)
    form = ChatFormat(TEMPLATES[template].read_text("utf-8"), vocab)
    sampler = Sampler(vocab, form.constraint(TOOLS, vocab))
    first = {vocab[int(token)] for token in sampler.allowed() if int(token) in vocab.control}
    assert first <= {vocab[token] for token in vocab.eog} | known(form), first
    assert first & known(form)
    sampler.accept(list(b" nobody known"))
    later = {vocab[int(token)] for token in sampler.allowed() if int(token) in vocab.control}
    assert later <= {vocab[token] for token in vocab.eog} | known(form), later


def known(form: ChatFormat) -> set[bytes]:
    """The control tokens that begin what may stand where a header stands."""
    content, reasoning = form.analysis.content, form.analysis.reasoning
    texts = [reasoning.start, content.start, *content.other_starts, *form.analysis.joints, *form.analysis.stops]
    marks = {content.start[place:] for place in range(len(content.start)) if content.start[place] == "<"}
    return {match.encode() for text in [*texts, *marks] for match in MARKER.findall(text)}
