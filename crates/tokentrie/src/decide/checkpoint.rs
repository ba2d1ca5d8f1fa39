//! Models that were trained to decide, in the prompt and with the labels that their file names.

use super::layout::Layout;
use super::options::{Decide, End, ListOrder};
use super::prompt::orders;
use super::question::{Kind, Question, as_text};
use super::spelling::Spellings;
use crate::chat::is_media;
use chat_format::{ChatTemplate, Data, RenderOptions, TracedText};
use llama_sampler::Model;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;
use trie_core::TokenId;
use trie_text::Vocab;

/// The most labels of a checkpoint.
const MOST_LABELS: usize = 255;
/// The labels with which `lev` rates how true a predicate is: from certainly no to certainly yes.
const RATINGS: usize = 9;
/// Sentinels of `decision_template.jinja`: the place where the prompt is read, and a cut in its text.
const MARK: &str = "<|mark|>";
const SPLIT: &str = "<|split|>";

/// Type of a checkpoint, which says how it is asked and read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    OpenJev,
    Lev,
    Nimble,
    PplxDecider,
    /// `decision.json` and `decision_template.jinja`, as transformers writes them.
    Files,
}

/// Temperatures, and how probabilities of the labels become those of the options.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Reading {
    pub(super) temperature: f64,
    /// The labels are ratings, from certainly no to certainly yes.
    pub(super) is_rating: bool,
}

impl Default for Reading {
    fn default() -> Self {
        Self { temperature: 1.0, is_rating: false }
    }
}

impl Reading {
    /// Returns the log-probabilities of the labels at the temperature.
    pub(super) fn scale(self, logs: Vec<f64>) -> Vec<f64> {
        logs.into_iter().map(|log| log / self.temperature).collect()
    }

    /// Returns the probabilities of the options from those of the labels.
    pub(super) fn of_options(self, shares: Vec<f64>) -> Vec<f64> {
        if !self.is_rating {
            return shares;
        }
        let most = (shares.len() - 1) as f64;
        let yes: f64 = shares.iter().enumerate().map(|(rating, share)| share * rating as f64 / most).sum();
        vec![yes, 1.0 - yes]
    }
}

/// A model that was trained to decide: the prompt, the labels and the temperatures of its file.
#[derive(Debug)]
pub(super) struct Checkpoint {
    form: Form,
    template: ChatTemplate,
    temperatures: HashMap<String, f64>,
    /// Labels by the kind of question in `decision.json`.
    labels: HashMap<String, Vec<String>>,
    /// True if a template gets yes before no.
    is_yes_first: bool,
}

/// `decision.json`; what else is in it changes nothing.
#[derive(Deserialize)]
#[serde(default)]
struct Settings {
    labels: HashMap<String, Vec<String>>,
    temperature: HashMap<String, f64>,
    noul_options: Vec<String>,
    chat_template: Option<String>,
}

impl Default for Settings {
    fn default() -> Self {
        let noul_options = vec!["true".to_owned(), "false".to_owned()];
        Self { labels: HashMap::new(), temperature: HashMap::new(), noul_options, chat_template: None }
    }
}

const KINDS: [&str; 3] = ["choice", "score", "noul"];

/// Returns the form of a type, or the reason why it is not read.
fn form_of(name: &str) -> Result<Form, String> {
    let reason = match name {
        "openjev" => return Ok(Form::OpenJev),
        "lev" => return Ok(Form::Lev),
        "nimble" => return Ok(Form::Nimble),
        "pplx-decider" => return Ok(Form::PplxDecider),
        "kev" => "its options are read from hidden states at their ends, not from the probabilities of labels",
        "laya" => "its options are read from scores of a head at their marks, not from the probabilities of labels",
        "clef" => "a head over hidden states reads all questions together, not the probabilities of labels",
        "lfm2-d1" => "the better of several tokens counts for each of its labels",
        "lfm2-d1-omni" => "its options are read from scores of a head at their marks, not from probabilities of labels",
        _ => {
            let known = "expected openjev, lev, nimble or pplx-decider";
            return Err(format!("unknown decision.type {name:?} in the model's file: {known}"));
        }
    };
    Err(format!("a decision checkpoint of the type {name:?} is not supported: {reason}"))
}

impl Checkpoint {
    /// Returns the checkpoint of a model's file, or of the files beside it; `None` if it is none.
    ///
    /// # Errors
    /// A type that cannot be read, a faulty template or a faulty temperature.
    pub(super) fn of_model(model: &Model) -> Result<Option<Self>, String> {
        let architecture = model.metadata("general.architecture").unwrap_or_default();
        let key = |name: &str| format!("{architecture}.decision.{name}");
        let Some(name) = model.metadata(&key("type")) else { return Self::beside(model.path()) };
        let form = form_of(&name)?;
        let Some(text) = model.metadata("tokenizer.chat_template.systemone") else {
            return Err(format!(
                "a decision checkpoint of the type {name:?} has no template \"systemone\" in its file"
            ));
        };
        let template = ChatTemplate::new(text, "", "").map_err(|error| format!("template \"systemone\": {error}"))?;
        let buckets: &[&str] = if form == Form::Lev { &["small", "mid", "large"] } else { &["2", "3_5", "6_10", "11"] };
        let each = KINDS.iter().flat_map(|kind| {
            let of_bucket = buckets.iter().map(move |bucket| format!("{kind}.{bucket}"));
            of_bucket.chain([(*kind).to_owned()])
        });
        let mut temperatures = HashMap::new();
        for name in each {
            let key = key(&format!("temperature.{name}"));
            if let Some(said) = model.metadata(&key) {
                temperatures.insert(name, temperature(&key, said.parse().ok())?);
            }
        }
        Ok(Some(Self { form, template, temperatures, labels: HashMap::new(), is_yes_first: form == Form::OpenJev }))
    }

    /// Returns the checkpoint that `decision.json` beside a model's file describes.
    fn beside(path: &Path) -> Result<Option<Self>, String> {
        let (settings, template) =
            (path.with_file_name("decision.json"), path.with_file_name("decision_template.jinja"));
        let Some(text) = read(&settings)? else { return Ok(None) };
        let at = |error: &dyn std::fmt::Display| format!("{}: {error}", settings.display());
        let read_settings: Settings = serde_json::from_str(&text).map_err(|error| at(&error))?;
        let Settings { labels, temperature: given, noul_options, chat_template } = read_settings;
        let Some(text) = read(&template)?.or(chat_template) else {
            return Err(at(&"there is no decision_template.jinja beside it, which is its prompt"));
        };
        let mut sides = noul_options.clone();
        sides.sort();
        if sides != ["false", "true"] {
            return Err(at(&format!("noul_options must order \"true\" and \"false\", got {noul_options:?}")));
        }
        let mut temperatures = HashMap::new();
        for (kind, value) in given {
            let value = temperature(&format!("temperature.{kind}"), Some(value)).map_err(|error| at(&error))?;
            temperatures.insert(kind, value);
        }
        let template = ChatTemplate::new(text, "", "").map_err(|error| format!("{}: {error}", template.display()))?;
        let is_yes_first = noul_options[0] == "true";
        Ok(Some(Self { form: Form::Files, template, temperatures, labels, is_yes_first }))
    }

    /// Checks that the options say nothing that the checkpoint's own prompt has no place for.
    pub(super) fn check(options: &Decide) -> Result<(), String> {
        let given = [
            ("system", options.system.is_some()),
            ("prompt", options.prompt != Layout::default()),
            ("prefix", options.prefix.as_deref().is_some_and(|prefix| !prefix.is_empty())),
            ("examples", !options.examples.is_empty()),
            ("list_options=false", !options.list_options),
            ("end=\"required\"", options.end == End::Required),
            ("escalate", options.escalate.is_some()),
            ("order", options.order != ListOrder::Given),
        ];
        match given.iter().find(|(_, is_given)| *is_given) {
            Some((name, _)) => {
                Err(format!("{name} is not supported: the model was trained to decide in its own prompt"))
            }
            None => Ok(()),
        }
    }

    /// Returns the orders in which the options of a question are listed. `lev` lists those of a choice forwards and
    /// backwards.
    pub(super) fn orders(&self, question: &Question, count: usize, options: &Decide) -> Vec<Vec<usize>> {
        if self.form == Form::Lev && options.permute == 1 && matches!(question.kind, Kind::Choice(_)) && count > 1 {
            return vec![(0..count).collect(), (0..count).rev().collect()];
        }
        orders(question, count, options)
    }

    /// Returns the labels of all options in the order of the question, whose listed order is given.
    ///
    /// # Errors
    /// Too many options, or labels of several tokens.
    pub(super) fn spellings(&self, question: &Question, vocab: &Vocab, order: &[usize]) -> Result<Spellings, String> {
        let is_rating = self.reading(question).is_rating;
        let labels = self.labels(question, vocab, if is_rating { RATINGS } else { order.len() })?;
        if is_rating {
            return Ok(Spellings::of_texts(labels));
        }
        let mut texts = vec![String::new(); labels.len()];
        for (place, &option) in self.template_order(question, order).iter().enumerate() {
            texts[option].clone_from(&labels[place]);
        }
        Ok(Spellings::of_texts(texts))
    }

    /// The order in which a template gets the options.
    fn template_order(&self, question: &Question, order: &[usize]) -> Vec<usize> {
        match question.kind {
            Kind::Predicate { .. } if !self.is_yes_first => order.iter().rev().copied().collect(),
            _ => order.to_vec(),
        }
    }

    /// The labels by place.
    fn labels(&self, question: &Question, vocab: &Vocab, count: usize) -> Result<Vec<String>, String> {
        let is_one = |label: &String| vocab.tokenize_inside(label).is_some_and(|tokens| tokens.len() == 1);
        let upper = || ('A'..='Z').map(String::from);
        let all: Vec<String> = match self.form {
            Form::OpenJev => upper().chain(('a'..='z').map(String::from)).collect(),
            Form::Lev | Form::Nimble | Form::PplxDecider => {
                let pairs = upper().flat_map(|first| upper().map(move |second| format!("{first}{second}")));
                upper().chain(pairs).filter(is_one).take(MOST_LABELS).collect()
            }
            Form::Files => {
                let usual = match question.kind {
                    Kind::Predicate { .. } => vec!["Yes".to_owned(), "No".to_owned()],
                    _ => upper().collect(),
                };
                self.labels.get(kind_of(question)).filter(|labels| !labels.is_empty()).cloned().unwrap_or(usual)
            }
        };
        if count > all.len() {
            let most = all.len();
            return Err(format!("there are {count} options: this model has {most} labels for such a question"));
        }
        let labels = &all[..count];
        match labels.iter().find(|label| !is_one(label)) {
            Some(label) => Err(format!("the label {label:?} is not one token of this model")),
            None => Ok(labels.to_vec()),
        }
    }

    /// Returns how the labels of a question are read.
    pub(super) fn reading(&self, question: &Question) -> Reading {
        let (kind, count) = (kind_of(question), question.kind.meanings().len());
        let bucket = match (self.form, count) {
            (Form::Lev, ..=8) => "small",
            (Form::Lev, ..=26) => "mid",
            (Form::Lev, _) => "large",
            (_, ..=2) => "2",
            (_, ..=5) => "3_5",
            (_, ..=10) => "6_10",
            _ => "11",
        };
        let found = self.temperatures.get(&format!("{kind}.{bucket}")).or_else(|| self.temperatures.get(kind));
        let is_rating = self.form == Form::Lev && matches!(question.kind, Kind::Predicate { .. });
        Reading { temperature: found.copied().unwrap_or(1.0), is_rating }
    }

    /// Returns the prompt of a question about a state.
    ///
    /// # Errors
    /// A state with images, and anything that the template or the vocabulary refuse.
    pub(super) fn prompt(
        &self,
        vocab: &Vocab,
        state: &Value,
        questions: &[Question],
        number: usize,
        orders: &[Vec<usize>],
        options: &Decide,
    ) -> Result<Vec<TokenId>, String> {
        if let Some(kind) = media(state) {
            return Err(format!(
                "the state has a part of the type {kind:?}, which is not supported: it is read as text"
            ));
        }
        let of = |question: &Question, order: &[usize]| self.describe(question, vocab, order, options);
        let asked = of(&questions[number], &orders[number])?;
        let mut variables: Vec<(String, Value)> = Vec::new();
        if self.form == Form::Files {
            variables.push(("state".to_owned(), state.clone()));
            variables.push(("question".to_owned(), asked.clone()));
            variables.push(("enable_thinking".to_owned(), false.into()));
        } else {
            for (name, value) in asked.as_object().into_iter().flatten() {
                variables.push((name.clone(), value.clone()));
            }
            variables.push(("state".to_owned(), state.clone()));
            variables.push(("images".to_owned(), json!([])));
        }
        if self.form == Form::Nimble {
            let all = questions.iter().zip(orders).map(|(question, order)| of(question, order));
            variables.push(("questions".to_owned(), all.collect::<Result<Vec<_>, _>>()?.into()));
        }
        let mut render = RenderOptions::default().with_adapt(false);
        for (name, value) in &variables {
            // It was trained with sorted keys.
            let value = if self.form == Form::Lev { sort_keys(value) } else { value.clone() };
            render = render.with_variable(name.clone(), Data::from(&value));
        }
        let messages = if self.form == Form::Files { json!([{"role": "user", "content": ""}]) } else { json!([]) };
        let text = self.template.render_traced(&Data::from(&messages), None, &render);
        let text = text.map_err(|error| format!("the decision template: {error}"))?;
        self.tokenize(vocab, &text)
    }

    /// A question as a template gets it.
    fn describe(&self, question: &Question, vocab: &Vocab, order: &[usize], options: &Decide) -> Result<Value, String> {
        let own = question.instructions.clone().unwrap_or_else(|| question.name.clone().into());
        let instructions = match &options.instructions {
            None => own,
            Some(all) => format!("{}\n{}", as_text(all), as_text(&own)).into(),
        };
        let listed = self.template_order(question, order);
        let texts = question.kind.texts();
        let is_labelled = !matches!(self.form, Form::OpenJev | Form::Files);
        let labels = self.labels(question, vocab, listed.len())?;
        let described: Vec<(String, Value)> =
            listed.iter().map(|&option| described(question, &texts, option)).collect();
        if self.form == Form::Files {
            let (keys, meanings): (Vec<String>, Vec<Value>) = described.into_iter().unzip();
            return Ok(json!({
                "name": question.name,
                "type": kind_of(question),
                "instructions": instructions,
                "options": keys,
                "labels": labels,
                "descriptions": meanings,
            }));
        }
        let option = |(place, (key, meaning)): (usize, (String, Value))| {
            let mut option = Map::new();
            option.insert("key".to_owned(), key.into());
            option.insert("description".to_owned(), meaning);
            if is_labelled {
                option.insert("label".to_owned(), labels[place].clone().into());
            }
            Value::Object(option)
        };
        let listed: Vec<Value> = described.into_iter().enumerate().map(option).collect();
        Ok(json!({
            "id": question.name,
            "type": kind_of(question),
            "instructions": instructions,
            "options": listed,
        }))
    }

    /// The tokens of a prompt, up to where it is read. Only the template's own text can name control tokens.
    fn tokenize(&self, vocab: &Vocab, prompt: &TracedText) -> Result<Vec<TokenId>, String> {
        let error = |error| format!("the decision template: {error}");
        if self.form != Form::Files {
            return vocab.tokenize_traced(prompt.text(), prompt.own_ranges(), false).map_err(error);
        }
        let (cuts, marks) = cuts(prompt);
        if marks > 1 {
            return Err(format!(
                "the decision template marks {marks} places for one question, so hidden states are read there: that is \
                 not supported, only the probabilities of labels are"
            ));
        }
        let mut tokens = Vec::new();
        for part in cuts {
            let own: Vec<Range<usize>> = prompt
                .own_ranges()
                .iter()
                .map(|own| own.start.max(part.start)..own.end.min(part.end))
                .filter(|own| own.start < own.end)
                .map(|own| own.start - part.start..own.end - part.start)
                .collect();
            tokens.extend(vocab.tokenize_traced(&prompt.text()[part], &own, false).map_err(error)?);
        }
        Ok(tokens)
    }
}

/// The parts of a prompt between its sentinels, up to the first mark, and the number of marks.
fn cuts(prompt: &TracedText) -> (Vec<Range<usize>>, usize) {
    let (text, mut parts, mut from, mut marks) = (prompt.text(), Vec::new(), 0, 0);
    for own in prompt.own_ranges() {
        let mut at = own.start;
        while let Some((found, sentinel)) =
            [MARK, SPLIT].iter().filter_map(|&sentinel| Some((at + text[at..own.end].find(sentinel)?, sentinel))).min()
        {
            if marks == 0 {
                parts.push(from..found);
            }
            marks += usize::from(sentinel == MARK);
            at = found + sentinel.len();
            from = at;
        }
    }
    if marks == 0 {
        parts.push(from..text.len());
    }
    (parts, marks)
}

/// The key of an option and what it means, as a template gets them.
fn described(question: &Question, texts: &[String], option: usize) -> (String, Value) {
    let meaning = question.kind.meanings()[option].cloned().unwrap_or_default();
    match &question.kind {
        Kind::Predicate { .. } => ((if option == 0 { "true" } else { "false" }).to_owned(), meaning),
        Kind::Choice(_) => (texts[option].clone(), meaning),
        Kind::Score(_) if meaning.is_null() => (option.to_string(), texts[option].clone().into()),
        Kind::Score(_) => (option.to_string(), format!("{}: {}", texts[option], as_text(&meaning)).into()),
    }
}

/// The kind of a question, as checkpoints name it.
fn kind_of(question: &Question) -> &'static str {
    match question.kind {
        Kind::Choice(_) => KINDS[0],
        Kind::Score(_) => KINDS[1],
        Kind::Predicate { .. } => KINDS[2],
    }
}

fn temperature(key: &str, said: Option<f64>) -> Result<f64, String> {
    let positive = said.filter(|value| *value > 0.0 && value.is_finite());
    positive.ok_or_else(|| format!("invalid {key}: expected a number above 0"))
}

/// The text of a file; `None` if there is none.
fn read(path: &Path) -> Result<Option<String>, String> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(format!("{}: {error}", path.display())),
    }
}

/// The type of the first part of a conversation that is not text.
fn media(state: &Value) -> Option<&str> {
    let turns = state.get("messages").unwrap_or(state).as_array()?;
    let parts = turns.iter().filter_map(|turn| turn.get("content")?.as_array()).flatten();
    let types = parts.filter_map(|part| part.get("type")?.as_str());
    types.into_iter().find(|kind| is_media(kind))
}

fn sort_keys(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(sort_keys).collect(),
        Value::Object(entries) => {
            let mut sorted: Vec<(&String, &Value)> = entries.iter().collect();
            sorted.sort_by_key(|(key, _)| *key);
            sorted.into_iter().map(|(key, value)| (key.clone(), sort_keys(value))).collect::<Map<_, _>>().into()
        }
        other => other.clone(),
    }
}
