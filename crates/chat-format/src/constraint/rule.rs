//! The machine as a rule over bytes.

use super::canonical::Canonical;
use crate::machine::{CallDecision, Listener, Machine, Nobody, Outcome, Region, Seq, State};
use crate::values::{CONTROL, Out};
use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;
use trie_core::work::over;
use trie_core::{Problem, TokenId};
use trie_rules::{LazyWalk, Rule, TokenBytes, Walker};
use trie_schema::{Types, ValueId};

/// Limits on white space and on markers before constrained content, so that both end.
const MOST_BLANKS: u8 = 8;
const MOST_MARKERS: u8 = 4;

/// Rule of a reply, from the end of its prompt. Free text is legal wherever nothing says otherwise.
#[derive(Clone)]
pub(crate) struct ReplyRule {
    pub machine: Arc<Machine>,
    pub start: RuleState,
    /// Ends the rule at the beginning of content: only text that may precede content is allowed.
    pub before: Option<BeforeContent>,
    /// Names, keys and values of lists come in the tokenizer's own tokens.
    pub canonical: Option<Arc<Canonical>>,
}

/// Condition under which the content of a reply may begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BeforeContent {
    /// True if content begins only with its own marker.
    pub marked: bool,
}

/// State of a reply.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct RuleState {
    pub state: State,
    /// Before content: number of bytes that may still become a marker.
    held: u16,
    /// Before content: amount of white space since the last marker.
    blanks: u8,
    /// Before content: number of markers so far.
    markers: u8,
}

impl BeforeContent {
    /// Returns whether content may begin here.
    pub(crate) fn may_begin(self, machine: &Machine, state: &State) -> bool {
        let here = match state.region() {
            Region::Content => true,
            Region::Fresh => !self.marked,
            _ => false,
        };
        here && !machine.may_be_in_marker(state)
    }
}

impl From<State> for RuleState {
    fn from(state: State) -> Self {
        Self { state, held: 0, blanks: 0, markers: 0 }
    }
}

impl fmt::Debug for ReplyRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReplyRule").field("start", &self.start).finish_non_exhaustive()
    }
}

impl ReplyRule {
    /// Returns whether any text is allowed here, and only markers are searched for.
    pub(crate) fn is_open(&self, at: &RuleState) -> bool {
        match self.before {
            Some(_) => self.machine.is_reasoning(&at.state) && at.state.is_text(),
            None => self.machine.is_open(&at.state),
        }
    }

    /// The state after all of these bytes.
    pub(super) fn walk(&self, from: &RuleState, bytes: &[u8]) -> Option<RuleState> {
        bytes.iter().try_fold(from.clone(), |at, &byte| self.step(&at, byte))
    }

    /// Returns whether a token of allowed bytes is forbidden, because the tokenizer would write another.
    pub(super) fn leaves_out(&self, at: &RuleState, token: TokenId) -> bool {
        self.canonical.as_ref().is_some_and(|canonical| canonical.leaves_out(at, token))
    }

    /// Steps by a byte before content. `None` if the byte is text of the content, or ends a marker that leads
    /// elsewhere.
    fn step_before(&self, at: &RuleState, byte: u8) -> Option<RuleState> {
        let thinks = at.state.region() == Region::Reasoning;
        let mut said = ByteListener { held: at.held, byte, thinks, is_wrong: false, blank: false, marker: false };
        said.held = said.held.saturating_add(u16::from(byte != CONTROL));
        let mut state = at.state.clone();
        self.machine.step(&mut state, byte, false, &mut said).ok()?;
        // What closes the reasoning, or begins content, must always be possible.
        let counts = said.marker && !thinks && state.region() != Region::Content;
        let blanks = if said.marker { 0 } else { at.blanks + u8::from(said.blank) };
        let markers = at.markers + u8::from(counts);
        // After a thought that the prompt closed stands the white space that the template writes there.
        let most_blanks = if at.state.is_quiet() { 0 } else { MOST_BLANKS };
        let few = blanks <= most_blanks && markers <= MOST_MARKERS;
        (!said.is_wrong && few).then_some(RuleState { state, held: said.held, blanks, markers })
    }

    /// Returns whether the begun text can be completed: several markers begin alike, and some lead elsewhere.
    fn leads_on(&self, at: &RuleState) -> bool {
        self.leads_by(at, |at| self.may_lead(at))
    }

    fn leads_by(&self, at: &RuleState, may_lead: impl Fn(&RuleState) -> bool) -> bool {
        let (mut seen, mut open) = (HashSet::new(), vec![at.clone()]);
        while let Some(at) = open.pop() {
            if !self.machine.may_be_in_marker(&at.state) {
                return true;
            }
            // A marker of something else, such as a call, leads nowhere, however it goes on.
            if !may_lead(&at) {
                continue;
            }
            let next = (0..CONTROL).filter_map(|byte| self.step_before(&at, byte));
            open.extend(next.filter(|next| seen.insert(next.clone())));
        }
        false
    }

    /// Returns whether the begun text may be an allowed marker, or text that is allowed here.
    fn may_lead(&self, at: &RuleState) -> bool {
        let thinks = at.state.region() == Region::Reasoning;
        // Of text, one byte of white space may stand here.
        thinks || at.held <= 1 || self.machine.may_mean(&at.state, |outcome| leads(outcome, thinks))
    }
}

/// Returns whether a marker may come before content.
fn leads(outcome: Outcome, thinks: bool) -> bool {
    match outcome {
        Outcome::Reasoning | Outcome::Joint | Outcome::Content => true,
        Outcome::ReasoningOver => thinks,
        _ => false,
    }
}

impl Rule for ReplyRule {
    type State = RuleState;

    fn start(&self) -> RuleState {
        self.start.clone()
    }

    fn step(&self, at: &RuleState, byte: u8) -> Option<RuleState> {
        if self.before.is_some() {
            return self.step_before(at, byte).filter(|next| self.leads_on(next));
        }
        let mut state = at.state.clone();
        self.machine.step(&mut state, byte, false, &mut Nobody).ok()?;
        Some(state.into())
    }

    fn is_end(&self, at: &RuleState) -> bool {
        let Some(before) = self.before else { return self.machine.is_end(&at.state) };
        before.may_begin(&self.machine, &at.state)
    }

    fn failure(&self) -> Option<Problem> {
        self.machine.values().failure().or_else(|| over().map(Problem::new))
    }

    fn failing(&self) -> bool {
        over().is_some() || self.machine.values().is_failing()
    }

    fn free_chars(&self, at: &RuleState) -> u32 {
        if self.before.is_some() { 0 } else { self.machine.free_chars(&at.state) }
    }

    fn walker(&self, tokens: &Arc<TokenBytes>) -> Option<Arc<dyn Walker<RuleState>>> {
        let forgetful = LazyWalk::new(Arc::new(Forgetful(self.clone())), Arc::clone(tokens));
        let closings: Vec<Vec<u8>> = self.machine.closings().collect();
        let all = (0..tokens.n_vocab() as u32).filter_map(TokenId::new).take_while(|_| !closings.is_empty());
        let closing = all.filter(|&token| closings.iter().any(|closing| may_close(tokens.bytes(token), closing)));
        let closing = closing.collect();
        Some(Arc::new(ForgetfulWalk { rule: self.clone(), tokens: Arc::clone(tokens), forgetful, closing }))
    }
}

/// The same rule for walks over a vocabulary. It does not keep keys that may have any name, because each beginning of
/// such a key would be a state of its own. A token may end one such key and begin the next, but may not end that one
/// too.
#[derive(Debug)]
struct Forgetful(ReplyRule);

impl Rule for Forgetful {
    type State = RuleState;

    fn start(&self) -> RuleState {
        self.0.start()
    }

    fn step(&self, at: &RuleState, byte: u8) -> Option<RuleState> {
        let mut next = self.0.step(at, byte)?;
        self.0.machine.forget_names(&mut next.state);
        Some(next)
    }

    fn is_end(&self, at: &RuleState) -> bool {
        self.0.is_end(at)
    }

    fn failing(&self) -> bool {
        self.0.failing()
    }

    fn free_chars(&self, at: &RuleState) -> u32 {
        self.0.free_chars(at)
    }
}

#[derive(Debug)]
struct ForgetfulWalk {
    rule: ReplyRule,
    tokens: Arc<TokenBytes>,
    forgetful: LazyWalk<Forgetful>,
    /// Tokens that may close an element. They are few, and are walked with all names kept.
    closing: Box<[TokenId]>,
}

/// Returns whether a token may contain part of a closing element's name, after the beginning `closing` or the end of
/// it.
fn may_close(token: &[u8], closing: &[u8]) -> bool {
    // Most tokens do not even have its last sign.
    let has_last = closing.last().is_some_and(|last| token.contains(last));
    let mut places = 1..if has_last { token.len() } else { 1 };
    places.any(|name| {
        let held = name.min(closing.len());
        // What ends with the sign before a name is not a name yet.
        token[..name].ends_with(&closing[closing.len() - held..]) && held > 1
    })
}

impl Walker<RuleState> for ForgetfulWalk {
    fn tokens(&self, at: &RuleState, words: &mut [u32]) {
        let mut forgetful = at.clone();
        self.rule.machine.forget_names(&mut forgetful.state);
        self.forgetful.tokens(&forgetful, words);
        for &token in self.closing.iter().filter(|_| forgetful != *at) {
            let bytes = self.tokens.bytes(token);
            let legal = self.rule.walk(at, bytes).is_some();
            let (word, bit) = (&mut words[token.index() / 32], 1 << (token.index() % 32));
            *word = if legal { *word | bit } else { *word & !bit };
        }
        if let Some(canonical) = &self.rule.canonical {
            canonical.narrow(at, words);
        }
    }

    fn leaves_out(&self, at: &RuleState, token: TokenId) -> bool {
        self.rule.leaves_out(at, token)
    }

    fn nbytes(&self) -> usize {
        self.forgetful.nbytes()
    }

    fn limit(&self, bytes: usize) {
        self.forgetful.limit(bytes);
    }

    fn forget(&self) {
        self.forgetful.forget();
    }
}

/// Listener that notes whether a byte before content was text of the content.
#[allow(clippy::struct_excessive_bools, reason = "each says one thing of a byte")]
struct ByteListener {
    held: u16,
    byte: u8,
    /// True if reasoning stood before it.
    thinks: bool,
    is_wrong: bool,
    blank: bool,
    marker: bool,
}

impl Out for ByteListener {
    fn json(&mut self, _text: &[u8]) {}
    fn raw_begin(&mut self, _shape: ValueId, _types: Types) {}
    fn raw(&mut self, _bytes: &[u8]) {}
    fn raw_end(&mut self) {}
}

impl Listener for ByteListener {
    fn text(&mut self, region: Region, keep: usize) {
        let keep = u16::try_from(keep).unwrap_or(u16::MAX).min(self.held);
        let said = self.held - keep;
        self.held = keep;
        if said > 0 && region != Region::Reasoning {
            self.blank = said == 1 && keep == 0 && self.byte.is_ascii_whitespace();
            self.is_wrong |= !self.blank;
        }
    }

    fn marker(&mut self, outcome: Outcome) {
        (self.held, self.marker) = (0, true);
        self.is_wrong |= !leads(outcome, self.thinks);
    }

    fn call(&mut self, _seq: &Seq, _tool: Option<u32>) -> CallDecision {
        CallDecision::Text
    }

    fn arguments(&mut self) {
        self.is_wrong = true;
    }

    fn call_over(&mut self, _tail: Option<&Seq>) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ChatFormat, ChatTemplate, ToolChoice, Tools};
    use test_budget::Random;

    #[test]
    fn what_leads_nowhere_is_what_a_whole_search_finds() {
        for (begin, end, call) in [
            ("", "", "<call>{{ c.function | tojson }}</call>"),
            ("<out>\n", "</out>", "<tool>{{ c.function.name }}\n{{ c.function.arguments | tojson }}</tool>"),
            ("", "", " [CALL]{{ c.function.name }}[ARGS]{{ c.function.arguments | tojson }}"),
        ] {
            let text = format!(
                "{{% for m in messages %}}<|{{{{ m.role }}}}|>{{% if m.reasoning_content %}}<think>\n\
                 {{{{ m.reasoning_content }}}}\n</think>\n{{% endif %}}{begin}{{{{ m.content }}}}{end}\
                 {{% for c in m.tool_calls %}}{call}{{% endfor %}}<|end|>\n{{% endfor %}}\
                 {{% if add_generation_prompt %}}<|assistant|>{{% endif %}}"
            );
            let format = ChatFormat::new(ChatTemplate::new(text, "", "").unwrap()).unwrap();
            let marked = !begin.is_empty();
            let machine = format.machine(Some(&Tools::default()), &ToolChoice::None, true, true).unwrap().machine;
            let before = Some(BeforeContent { marked });
            let start = crate::machine::State::start().into();
            let rule = ReplyRule { machine, start, before, canonical: None };
            let (mut seen, mut open, mut dead) = (HashSet::new(), vec![rule.start()], 0);
            while let Some(at) = open.pop() {
                for next in (0..CONTROL).filter_map(|byte| rule.step_before(&at, byte)) {
                    let leads = rule.leads_on(&next);
                    assert_eq!(leads, rule.leads_by(&next, |_| true), "{call}: {next:?}");
                    dead += usize::from(!leads);
                    if seen.len() < 300 && seen.insert(next.clone()) {
                        open.push(next);
                    }
                }
            }
            assert!(dead > 0 && seen.len() > 50, "{call}: {dead} of {}", seen.len());
        }
    }

    /// Rules of two tools whose strings have limits of all kinds, as JSON and as keywords.
    fn rules_with_strings() -> Vec<ReplyRule> {
        let text = |bounds: serde_json::Value| {
            let mut text = serde_json::json!({"type": "string"});
            text.as_object_mut().unwrap().extend(bounds.as_object().unwrap().clone());
            text
        };
        let properties = serde_json::json!({
            "free": text(serde_json::json!({})),
            "short": text(serde_json::json!({"maxLength": 5})),
            "near": text(serde_json::json!({"minLength": 2, "maxLength": 17})),
            "long": text(serde_json::json!({"maxLength": 400})),
            "code": text(serde_json::json!({"pattern": "^[a-z0]{2,30}$"})),
            "open": text(serde_json::json!({"pattern": "^[^7]*$", "maxLength": 60})),
            "either": {"anyOf": [{"type": "integer"}, {"type": "string", "maxLength": 30}, {"const": "ab0"}]},
            "one": {"enum": ["ab", "a0", "世"]},
        });
        let tool = |name: &str| {
            serde_json::json!({"type": "function", "function": {"name": name, "description": "Does it.",
                "parameters": {"type": "object", "properties": properties, "additionalProperties": false}}})
        };
        let tools = Tools::new(&[tool("ab"), tool("get")]).unwrap();
        let templates = [
            "<call>{{ c.function | tojson }}</call>",
            "<call>[{{ c.function.name }}({% for k, v in c.function.arguments.items() %}{{ k }}={{ v | tojson }}\
             {% if not loop.last %}, {% endif %}{% endfor %})]</call>",
        ];
        let rule = |call: &str| {
            let text = format!(
                "{{% for m in messages %}}<|{{{{ m.role }}}}|>{{{{ m.content }}}}\
                 {{% for c in m.tool_calls %}}{call}{{% endfor %}}<|end|>\n{{% endfor %}}\
                 {{% if add_generation_prompt %}}<|assistant|>{{% endif %}}"
            );
            let format = ChatFormat::new(ChatTemplate::new(text, "", "").unwrap()).unwrap();
            let machine = format.machine(Some(&tools), &ToolChoice::Required, true, true).unwrap().machine;
            ReplyRule { machine, start: crate::machine::State::start().into(), before: None, canonical: None }
        };
        templates.into_iter().map(rule).collect()
    }

    #[test]
    fn free_characters_may_come_and_a_walk_with_them_finds_what_a_plain_one_finds() {
        const CHARS: [char; 14] = ['a', 'b', '0', '7', '_', 'Z', '<', '/', '\'', ',', ')', 'é', '世', '🙂'];
        let mut random = Random(9);
        let mut pieces: Vec<Vec<u8>> = (0..=255).map(|byte| vec![byte]).collect();
        for _ in 0..3000 {
            let most = if random.one_in(3) { 18 } else { 4 };
            let count = 1 + random.below(most);
            let text: String = (0..count).map(|_| CHARS[random.below(CHARS.len())]).collect();
            let around = [("", ""), (" ", ""), ("", "\""), ("", "\", \""), ("\\n", "")][random.below(5)];
            pieces.push(format!("{}{text}{}", around.0, around.1).into_bytes());
        }
        pieces.extend(
            ["\", \"", "\": \"", "=\"", "<call>", "</call>", "\"}", "free", "open", "near"]
                .map(|one| one.as_bytes().into()),
        );
        let rows = pieces.iter().zip(0..).map(|(piece, id)| (&piece[..], TokenId::new(id).unwrap()));
        let tokens = Arc::new(TokenBytes::new(pieces.len(), rows).unwrap());
        let (mut free, mut compared) = (0, 0);
        let begins = [r#"<call>{"name": "get", "arguments": {"NAME": ""#, r#"<call>[get(NAME=""#];
        for (rule, begin) in rules_with_strings().into_iter().zip(begins) {
            let walker = rule.walker(&tokens).unwrap();
            for round in 0..test_budget::cases(300) {
                let name = ["free", "near", "long", "open", "code", "either"][random.below(6)];
                let begun = begin.replace("NAME", name);
                let mut at = rule.walk(&rule.start(), begun.as_bytes()).unwrap();
                if round % 4 == 0 {
                    walker.forget();
                }
                for _ in 0..30 {
                    let mut plain = Vec::new();
                    tokens.walk(&at, |at, byte| rule.step(at, byte), |token| plain.push(token));
                    let count = rule.free_chars(&at).min(40);
                    let text: String = (0..count).map(|_| CHARS[random.below(CHARS.len())]).collect();
                    assert!(rule.walk(&at, text.as_bytes()).is_some(), "{text:?} at {at:?}");
                    if count > 0 && free < 400 || random.below(40) == 0 {
                        let mut words = vec![0; pieces.len().div_ceil(32)];
                        walker.tokens(&at, &mut words);
                        let has = |token: TokenId| words[token.index() / 32] >> (token.index() % 32) & 1 == 1;
                        let found: Vec<TokenId> = TokenId::all(pieces.len()).filter(|&token| has(token)).collect();
                        plain.sort_unstable();
                        assert_eq!(found, plain, "{at:?}");
                        compared += 1;
                        free += usize::from(count >= 16);
                    }
                    // Mostly what goes on to another string.
                    let short: Vec<_> = plain.iter().filter(|&&one| tokens.bytes(one).contains(&b'"')).collect();
                    let next = match short.len() {
                        0 => plain.get(random.below(plain.len().max(1))),
                        count if random.below(4) == 0 => Some(short[random.below(count)]),
                        _ => plain.get(random.below(plain.len())),
                    };
                    let Some(&next) = next else { break };
                    at = rule.walk(&at, tokens.bytes(next)).unwrap();
                }
            }
        }
        assert!(free > 50 && compared > 200, "{free} of {compared}");
    }
}
