//! Names of tools, named keys and values of enums come in the tokenizer's own tokens: over templates and vocabularies
//! that are in use. The judge is the tokenizer over whole texts of the template, which no constraint has seen.

use chat_format::{
    CallSpelling, ChatFormat, ChatTemplate, ConstraintOptions, FormatError, ParserOptions, RenderOptions, ToolChoice,
    Tools,
};
use llama_sampler::vocab_from_gguf;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokentrie::chat::{ConstraintError, ModelFormat};
use trie_core::{AnyConstraint, AnyState, Constraint, Ending, Scratch, TokenId};
use trie_text::Vocab;

struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % end.max(1) as u64) as usize
    }

    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }

    fn word(&mut self, parts: &[&str], most: usize) -> String {
        (0..=self.below(most)).map(|_| self.pick(parts)).collect()
    }

    /// Several, each once.
    fn words(&mut self, parts: &[&str], most: usize) -> Vec<String> {
        let words: BTreeSet<String> = (0..=self.below(most)).map(|_| self.word(parts, 3)).collect();
        words.into_iter().collect()
    }
}

const NAMES: [&str; 14] =
    ["get", "weather", "_", "Search", "HTTP", "2", "query", "update_", "db", "__", "calendar", "v10", "x", "list"];
const KEYS: [&str; 14] =
    ["city", "_", "unit", "max", "Rows", "id", "$ref", "@type", "9", "zip_code", "-", "größe", "is", "a"];
const VALUES: [&str; 16] =
    ["celsius", "New", " ", "York", "N/A", "+1", "high", "-", "3.5", "\"", "日本", "é", "Paris", "_", "({", "x"];

/// A tool whose arguments are listed, and arguments for it.
fn tool(random: &mut Random, name: &str) -> (Value, Value) {
    let (mut properties, mut given) = (Map::new(), Map::new());
    for key in random.words(&KEYS, 4) {
        let schema = match random.below(4) {
            0 => json!({"type": "boolean"}),
            1 => json!({"type": "integer", "minimum": 0, "maximum": 99}),
            _ => json!({"type": "string", "enum": random.words(&VALUES, 5)}),
        };
        let value = match schema.get("enum").and_then(Value::as_array) {
            Some(values) => values[random.below(values.len())].clone(),
            None if schema["type"] == "boolean" => true.into(),
            None => random.below(100).into(),
        };
        given.insert(key.clone(), value);
        properties.insert(key, schema);
    }
    let required: Vec<&String> = given.keys().collect();
    let parameters =
        json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false});
    let function = json!({"name": name, "description": "Does it.", "parameters": parameters});
    (json!({"type": "function", "function": function}), given.into())
}

fn templates() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let real = std::env::var_os("TOKENTRIE_TEMPLATE_DIR").filter(|name| !name.is_empty());
    let real = real.map_or_else(|| root.join("../shared/templates"), PathBuf::from);
    let folders = [root.join("crates/chat-format/tests/templates"), real];
    let files = folders.iter().filter_map(|folder| std::fs::read_dir(folder).ok()).flatten();
    let mut files: Vec<PathBuf> = files.map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "jinja"));
    files.sort();
    files
}

/// The model that the package carries, and those in the folder that `TOKENTRIE_VOCAB_DIR` names.
fn vocabularies() -> Vec<(String, Arc<Vocab>)> {
    let tiny = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python/tokentrie/models/tiny.gguf");
    let folder = std::env::var_os("TOKENTRIE_VOCAB_DIR").filter(|name| !name.is_empty());
    let files = folder.map(|folder| std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()));
    if files.is_none() {
        eprintln!("SKIPPED the vocabularies in use: TOKENTRIE_VOCAB_DIR is not set");
    }
    let mut files: Vec<PathBuf> = files.into_iter().flatten().filter(|path| path.extension().is_some()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "gguf"));
    files.sort();
    files.insert(0, tiny);
    let name = |path: &Path| path.file_stem().unwrap().to_string_lossy().into_owned();
    files.iter().map(|path| (name(path), Arc::new(vocab_from_gguf(path).unwrap()))).collect()
}

fn format(path: &Path, vocab: &Arc<Vocab>) -> Option<ModelFormat> {
    let template = ChatTemplate::new(std::fs::read_to_string(path).unwrap(), "", "").ok()?;
    let format = ChatFormat::with_control_tokens(template, tokentrie::chat::control_texts(vocab)).ok()?;
    format.analysis().dialect.calls.is_some().then(|| ModelFormat::new(format, Arc::clone(vocab)))
}

/// Both constraints after the template's prompt, without thoughts where that can be.
struct Held {
    canonical: AnyConstraint,
    any: AnyConstraint,
    prompt: String,
    options: ConstraintOptions,
}

fn held(format: &ModelFormat, tools: &[Value], choice: ToolChoice) -> Option<Held> {
    let ask = [json!({"role": "user", "content": "Go."})];
    let (prompt, turn) = format
        .format()
        .prompt(&ask, Some(&Value::from(tools)), &chat_format::analysis::PromptOptions::default())
        .ok()?;
    let mut options = ConstraintOptions::default();
    options.tools = Tools::new(tools).unwrap();
    (options.choice, options.prompt) = (choice, Some(prompt[turn..].to_owned()));
    let made = |options: &ConstraintOptions| match format.constraint(options, Some(0)) {
        Err(ConstraintError::NoEnd { .. }) => format.constraint(options, None),
        made => made,
    };
    let canonical = match made(&options) {
        Ok(made) => made,
        Err(ConstraintError::Format(FormatError::Name { .. } | FormatError::Misread { .. })) => return None,
        Err(error) => panic!("{error}"),
    };
    let any = made(&{
        let mut any = options.clone();
        any.spelling = CallSpelling::Any;
        any
    });
    Some(Held { canonical, any: any.unwrap(), prompt, options })
}

/// What the template writes of a call after the prompt, and the tokens of that.
fn written(
    format: &ModelFormat,
    held: &Held,
    tools: &[Value],
    name: &str,
    arguments: &Value,
) -> Option<(String, Vec<TokenId>)> {
    let call = json!({"type": "function", "id": "call00000", "function": {"name": name, "arguments": arguments}});
    let said = json!({"role": "assistant", "content": "", "tool_calls": [call]});
    let messages = [json!({"role": "user", "content": "Go."}), said];
    let options = RenderOptions::default().with_generation_prompt(false);
    let text = format.format().render(&messages, Some(&Value::from(tools)), &options).ok()?;
    let reply = text.strip_prefix(&held.prompt)?.to_owned();
    let tokens = format.vocab().tokenize(&reply, false, true).ok()?;
    // Some tokenizers write a blank before a text.
    (format.vocab().detokenize(&tokens).ok()? == reply.as_bytes()).then_some((reply, tokens))
}

fn allowed(constraint: &AnyConstraint, state: &AnyState, n_vocab: usize) -> (Vec<TokenId>, Ending) {
    let mut scratch = Scratch::default();
    let next = constraint.next(state, &mut scratch);
    (next.tokens.iter().take_while(|token| token.index() < n_vocab).collect(), next.ending)
}

#[test]
fn at_the_start_of_a_name_only_canonical_first_tokens_come() {
    const NAMES: [&str; 4] = ["get_weather", "find_documents", "get_current_temperature", "weatherman"];
    let parameters = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    let tools = NAMES.map(|name| {
        json!({"type": "function", "function": {"name": name, "description": "Does it.",
        "parameters": parameters}})
    });
    let (mut seen, mut left_out) = (0, 0);
    for (of, vocab) in vocabularies() {
        for path in templates().iter().step_by(test_budget::every().min(3)) {
            let Some(format) = format(path, &vocab) else { continue };
            let Some(held) = held(&format, &tools, ToolChoice::Required) else { continue };
            // Of each tool the token at the start of its name, and the state there.
            let mut firsts = BTreeSet::new();
            let mut at = None;
            for name in NAMES {
                let Some((reply, tokens)) = written(&format, &held, &tools, name, &json!({"n": 1})) else { continue };
                let (Some(start), mut state, mut bytes) = (reply.find(name), held.canonical.start(), 0) else {
                    continue;
                };
                for token in tokens {
                    if bytes == start {
                        firsts.insert(token);
                        at = Some((name, state));
                        break;
                    }
                    let Some(_) = held.canonical.advance(&mut state, token) else { break };
                    bytes += vocab.piece(token).unwrap().len();
                }
            }
            // In some the first token of a name begins before it.
            let Some((name, state)) = at.filter(|_| firsts.len() == 3 || firsts.len() == 4) else { continue };
            let (legal, _) = allowed(&held.canonical, &state, vocab.len());
            let is_inside = |&token: &TokenId| {
                let piece = vocab.piece(token).unwrap_or_default();
                !piece.is_empty() && NAMES.iter().any(|name| name.as_bytes().starts_with(piece))
            };
            let legal: BTreeSet<TokenId> = legal.into_iter().collect();
            let inside: BTreeSet<TokenId> = legal.iter().copied().filter(is_inside).collect();
            let text = |tokens: &BTreeSet<TokenId>| -> Vec<String> {
                tokens.iter().map(|&id| String::from_utf8_lossy(vocab.piece(id).unwrap()).into_owned()).collect()
            };
            assert_eq!(text(&inside), text(&firsts), "{of}, {}", path.display());
            for &token in legal.difference(&inside) {
                let piece = vocab.piece(token).unwrap();
                // Something else than a call may have its place where names stand.
                let is_other = !piece.first().is_some_and(|byte| b"gfw".contains(byte));
                let crosses = is_other || NAMES.iter().any(|name| piece.starts_with(name.as_bytes()));
                assert!(crosses, "{of}, {}: {:?}", path.display(), String::from_utf8_lossy(piece));
            }
            let (before, _) = allowed(&held.any, &state_of(&held.any, &held, &format, &tools, name), vocab.len());
            left_out += before.len() - legal.len();
            seen += 1;
        }
    }
    println!("{seen} formats, {left_out} tokens left out");
    assert!(seen > 2 && left_out > 5 * seen, "{seen} formats, {left_out} tokens left out");
}

/// The state of a constraint right before the name, after the tokens of the template's text.
fn state_of(constraint: &AnyConstraint, held: &Held, format: &ModelFormat, tools: &[Value], name: &str) -> AnyState {
    let (reply, tokens) = written(format, held, tools, name, &json!({"n": 1})).unwrap();
    let (mut state, mut bytes) = (constraint.start(), 0);
    for token in tokens {
        if Some(bytes) == reply.find(name) {
            break;
        }
        constraint.advance(&mut state, token).unwrap();
        bytes += format.vocab().piece(token).unwrap().len();
    }
    state
}

/// Places of a text, and of what is in another as a whole.
fn found(reply: &str, part: &str) -> Vec<Range<usize>> {
    reply.match_indices(part).map(|(at, part)| at..at + part.len()).collect()
}

#[test]
fn whatever_the_tokenizer_writes_comes_and_every_walk_ends_in_a_call() {
    let (mut texts, mut inside, mut walks, mut left_out, mut worst) = (0, 0, 0, 0, [Duration::ZERO; 2]);
    let seed = std::time::UNIX_EPOCH.elapsed().unwrap().as_nanos() as u64 | 1;
    let vocabularies = vocabularies();
    // Over the package's own vocabulary alone a part of the templates has too few texts.
    let stride = if vocabularies.len() > 1 { test_budget::every() } else { 1 };
    for (of, vocab) in vocabularies {
        for (number, path) in templates().iter().enumerate().step_by(stride) {
            let Some(format) = format(path, &vocab) else { continue };
            for case in 0..test_budget::cases(20) {
                let seed =
                    seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add((number as u64) << 32 | u64::from(case));
                let random = &mut Random(seed | 1);
                let names = random.words(&NAMES, 4);
                let (tools, given): (Vec<Value>, Vec<Value>) = names.iter().map(|name| tool(random, name)).unzip();
                let Some(held) = held(&format, &tools, ToolChoice::Required) else { continue };
                let told = |what: &str| format!("{what}: {of}, {}, seed {seed}, {tools:?}", path.display());
                for (name, arguments) in names.iter().zip(&given) {
                    let Some((reply, tokens)) = written(&format, &held, &tools, name, arguments) else { continue };
                    let (mut state, mut twin, mut bytes) = (held.canonical.start(), held.any.start(), 0);
                    let places = found(&reply, name);
                    for &token in &tokens {
                        if held.any.advance(&mut twin, token).is_none() {
                            break;
                        }
                        let mut scratch = Scratch::default();
                        let comes = held.canonical.next(&state, &mut scratch).tokens.contains(token);
                        let shown = || {
                            let piece = String::from_utf8_lossy(vocab.piece(token).unwrap()).into_owned();
                            told(&format!("{piece:?} does not come in {reply:?} at byte {bytes}"))
                        };
                        assert!(comes, "{}", shown());
                        assert!(held.canonical.advance(&mut state, token).is_some(), "{}", shown());
                        bytes += vocab.piece(token).unwrap().len();
                        inside += usize::from(places.iter().any(|place| place.start < bytes && bytes <= place.end));
                    }
                    texts += 1;
                }
                for _ in 0..3 {
                    let walked = walk(&format, &held, &tools, random, &told);
                    left_out += walked.left_out;
                    worst = [worst[0].max(walked.canonical), worst[1].max(walked.any)];
                    walks += 1;
                }
            }
        }
    }
    println!("{texts} texts, {inside} tokens inside of names, {walks} walks, {left_out} tokens left out");
    println!("the slowest first masks: {worst:?} with canonical spelling and without");
    assert!(texts > 20 && inside > texts && left_out > walks, "{texts} texts, {inside} inside, {left_out} left out");
}

/// How many tokens were left out on the way of a reply, and the slowest masks.
#[derive(Default)]
struct Walked {
    left_out: usize,
    canonical: Duration,
    any: Duration,
}

/// Writes one reply of random legal tokens.
fn walk(
    format: &ModelFormat,
    held: &Held,
    tools: &[Value],
    random: &mut Random,
    told: &impl Fn(&str) -> String,
) -> Walked {
    let vocab = format.vocab();
    let (mut state, mut said, mut walked) = (held.canonical.start(), Vec::new(), Walked::default());
    for _ in 0..600 {
        let (spent, _) =
            test_budget::computed(|| held.canonical.next(&state, &mut Scratch::default()).tokens.is_empty());
        walked.canonical = walked.canonical.max(spent);
        let (legal, ending) = allowed(&held.canonical, &state, vocab.len());
        let text = || String::from_utf8_lossy(&vocab.detokenize(&said).unwrap()).into_owned();
        if ending != Ending::No {
            break;
        }
        assert!(!legal.is_empty(), "{}", told(&format!("a dead end after {:?}", text())));
        let forced = held.canonical.forced_token(&state, &mut Scratch::default());
        // White space may be long.
        let short =
            |token: &TokenId| vocab.piece(*token).is_some_and(|piece| !piece.iter().all(u8::is_ascii_whitespace));
        let some: Vec<TokenId> = legal.iter().copied().filter(short).collect();
        let token = forced.unwrap_or_else(|| random.pick(if some.is_empty() { &legal } else { &some }));
        // Mask and accept say the same, of tokens that are left out too.
        for _ in 0..40 {
            let other = TokenId::new(random.below(vocab.len()) as u32).unwrap();
            let takes = held.canonical.step(&state, other).is_some();
            let is_open = legal.len() > 5000;
            assert!(
                is_open || takes == legal.binary_search(&other).is_ok(),
                "{}",
                told(&format!("{other} after {:?}", text()))
            );
        }
        assert!(
            legal.binary_search(&token).is_ok(),
            "{}",
            told(&format!("{token} is forced and does not come after {:?}", text()))
        );
        held.canonical.advance(&mut state, token).unwrap();
        said.push(token);
    }
    // What the other constraint takes of the same tokens, and what it would allow besides.
    let (mut twin, mut state) = (held.any.start(), held.canonical.start());
    for &token in &said {
        let mut scratch = Scratch::default();
        let (spent, next) = test_budget::computed(|| held.any.next(&twin, &mut scratch).tokens.len());
        walked.any = walked.any.max(spent);
        let left = held.canonical.next(&state, &mut Scratch::default()).tokens.len();
        walked.left_out += next - left;
        assert!(held.any.advance(&mut twin, token).is_some());
        held.canonical.advance(&mut state, token).unwrap();
    }
    if said.len() == 600 {
        return walked;
    }
    let mut options = ParserOptions::default();
    options.tools = Some(held.options.tools.clone());
    options.tool_choice = held.options.choice.clone();
    options.prompt.clone_from(&held.options.prompt);
    let mut parser = format.parser(&options).unwrap();
    for &token in &said {
        format.push(&mut parser, token);
    }
    let (_, message) = parser.finish(false);
    let text = String::from_utf8_lossy(&vocab.detokenize(&said).unwrap()).into_owned();
    let what = told(&format!("{text:?} reads as {message:?}"));
    assert!(!message.tool_calls.is_empty(), "{what}");
    for call in &message.tool_calls {
        let tool = tools.iter().find(|tool| tool["function"]["name"] == call.name[..]);
        let parameters = &tool.unwrap_or_else(|| panic!("{what}"))["function"]["parameters"];
        let given: Map<String, Value> = serde_json::from_str(&call.arguments).unwrap();
        let properties = parameters["properties"].as_object().unwrap();
        assert!(given.len() == properties.len(), "{what}");
        for (key, value) in &given {
            let schema = properties.get(key).unwrap_or_else(|| panic!("{what}"));
            let fits = match schema.get("enum").and_then(Value::as_array) {
                Some(values) => values.contains(value),
                None if schema["type"] == "boolean" => value.is_boolean(),
                None => value.as_i64().is_some_and(|number| (0..100).contains(&number)),
            };
            assert!(fits, "{what}");
        }
    }
    walked
}
