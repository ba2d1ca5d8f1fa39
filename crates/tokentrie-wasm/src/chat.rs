//! Formats of chats: a template rendered, its analysis, replies read. Constraints on replies are specs, `{"reply": …}`.

use crate::host::put_result;
use chat_format::analysis::{ContinuedPart, PromptOptions};
use chat_format::{ChatFormat, ChatTemplate, Clock, Data, Event, ParserOptions, ReasoningFormat, RenderOptions, Tools};
use serde_json::{Value, json};
use std::ffi::c_char;
use std::sync::Arc;
use tokentrie::chat::{
    ModelFormat, ReplyParser, ResponseTemplate, control_texts, event_json, known_tools, message_json, prompt_json,
    tool_choice, wrapped_tool,
};
use tokentrie_c::abi::tokentrie_vocab;
use tokentrie_c::more::{Error, Kind, Result, Table, done, json_bytes, vocab_of};
use tokentrie_c::status::*;
use tokentrie_c::{In, Out};
use trie_core::TokenId;

static FORMATS: Table<Format> = Table::new(Kind::Format);
static PARSERS: Table<Reading> = Table::new(Kind::Parser);

/// A format, and over its vocabulary, where it has one.
#[derive(Clone)]
struct Format {
    format: ChatFormat,
    over: Option<Arc<ModelFormat>>,
}

/// A reply that is read. One that is over says what it was.
struct Reading(Option<ReplyParser>);

fn wrong(error: impl std::fmt::Display) -> Error {
    Error::new(TOKENTRIE_ERROR_SPEC, error.to_string())
}

fn request(json: &In<c_char>, length: usize) -> Result<Value> {
    let read: Value = serde_json::from_slice(json_bytes(json, length)?).map_err(wrong)?;
    if read.is_object() { Ok(read) } else { Err(wrong("an object of JSON is needed")) }
}

fn text<'v>(of: &'v Value, name: &str) -> Result<Option<&'v str>> {
    match of.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(other) => Err(wrong(format!("$.{name}: expected a text, got {other}"))),
    }
}

fn flag(of: &Value, name: &str, usual: bool) -> Result<bool> {
    match of.get(name) {
        None | Some(Value::Null) => Ok(usual),
        Some(Value::Bool(flag)) => Ok(*flag),
        Some(other) => Err(wrong(format!("$.{name}: {other} is neither true nor false"))),
    }
}

fn list<'v>(of: &'v Value, name: &str) -> Result<Option<&'v Vec<Value>>> {
    match of.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Array(list)) => Ok(Some(list)),
        Some(other) => Err(wrong(format!("$.{name}: expected a list, got {other}"))),
    }
}

fn tools(of: &Value) -> Result<Option<Value>> {
    let tools = list(of, "tools")?;
    Ok(tools.map(|tools| tools.iter().cloned().map(wrapped_tool).collect()))
}

/// The template, with the texts of its tokens.
fn template(given: &Value) -> Result<ChatTemplate> {
    let template = text(given, "template")?.ok_or_else(|| wrong("$.template: it is missing"))?;
    let (bos, eos) = (text(given, "bos")?.unwrap_or_default(), text(given, "eos")?.unwrap_or_default());
    ChatTemplate::new(template, bos, eos).map_err(wrong)
}

fn of_template(given: &Value, control: Vec<String>) -> Result<ChatFormat> {
    ChatFormat::with_control_tokens(template(given)?, control).map_err(wrong)
}

fn response_template(given: &Value) -> Result<Option<ResponseTemplate>> {
    let said = match given.get("response_template") {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::String(json)) => ResponseTemplate::from_json(json),
        Some(said) => ResponseTemplate::new(said),
    };
    said.map(Some).map_err(wrong)
}

/// Parses the options of a rendering beside messages and tools.
fn render_options(given: &Value) -> Result<RenderOptions> {
    let mut options = RenderOptions::default();
    for (name, value) in given.get("variables").and_then(Value::as_object).into_iter().flatten() {
        options = options.with_variable(name.clone(), value);
    }
    if let Some(now) = given.get("now").filter(|now| !now.is_null()) {
        let clock = now.as_f64().and_then(|now| Clock::at_milliseconds(now as i64));
        options = options.with_clock(
            clock.ok_or_else(|| wrong(format!("$.now: invalid time {now}: expected milliseconds since 1970")))?,
        );
    }
    Ok(options)
}

fn messages(given: &Value) -> Result<&Vec<Value>> {
    list(given, "messages")?.ok_or_else(|| wrong("$.messages: they are missing"))
}

/// Renders messages as they are with any template: the fields of both functions below, and "now", milliseconds since
/// 1970 in local time. The text as JSON.
#[unsafe(no_mangle)]
pub extern "C" fn tokentrie_template_render(json: In<c_char>, length: usize) -> tokentrie_status {
    done(|| {
        let given = request(&json, length)?;
        let options = render_options(&given)?.with_generation_prompt(flag(&given, "add_generation_prompt", true)?);
        let messages = Data::from(&Value::Array(messages(&given)?.clone()));
        let tools = list(&given, "tools")?.map(|tools| Data::from(&Value::Array(tools.clone())));
        let text = template(&given)?.render(&messages, tools.as_ref(), &options).map_err(wrong)?;
        put_result(&text.into());
        Ok(())
    })
}

/// Finds out how the chats of a template are written: `{"template": "...", "bos": "<s>", "eos": "</s>"}`. A
/// `"response_template"`, an object or its JSON, says how the model's author reads replies; beside it the template may
/// be null: then nothing can be rendered. With a vocabulary its control tokens are known, and replies may be read in
/// tokens; the handle may be 0.
#[unsafe(no_mangle)]
pub extern "C" fn tokentrie_format_new(
    json: In<c_char>,
    length: usize,
    vocab: tokentrie_vocab,
    format: Out<u64>,
) -> tokentrie_status {
    done(|| {
        format.check("format")?;
        let given = request(&json, length)?;
        let vocab = if vocab == 0 { None } else { Some(vocab_of(vocab)?) };
        let vocab = vocab.as_ref().and_then(|vocab| vocab.tokens());
        let control = vocab.map(|vocab| control_texts(vocab)).unwrap_or_default();
        let said = response_template(&given)?;
        let has_template = given.get("template").is_some_and(|template| !template.is_null());
        let made = match &said {
            Some(said) if !has_template => ChatFormat::from_response_template(said).map_err(wrong)?,
            Some(said) => of_template(&given, control)?.with_response_template(said),
            None => of_template(&given, control)?,
        };
        let over = vocab.map(|vocab| Arc::new(ModelFormat::new(made.clone(), Arc::clone(vocab))));
        format.put(FORMATS.insert(Format { format: made, over })?);
        Ok(())
    })
}

/// Returns the analysis of a format, as an object in JSON.
#[unsafe(no_mangle)]
pub extern "C" fn tokentrie_format_analysis(format: u64) -> tokentrie_status {
    done(|| {
        put_result(&FORMATS.get(format)?.format.analysis().to_json());
        Ok(())
    })
}

/// The prompt of a conversation: `{"messages": [...], "tools": [...], "add_generation_prompt": true, "enable_thinking":
/// true, "continue_final_message": "content", "variables": {}}` gives `{"text": "...", "turn": "...", "parts": [["...",
/// true]]}`: `turn` is what of it begins the reply, null without a generation prompt; `parts` are its text with whether
/// the template wrote it, for `tokentrie_vocab_tokenize_parts`.
#[unsafe(no_mangle)]
pub extern "C" fn tokentrie_format_render(format: u64, json: In<c_char>, length: usize) -> tokentrie_status {
    done(|| {
        let (found, given) = (FORMATS.get(format)?, request(&json, length)?);
        let (format, messages) = (&found.format, messages(&given)?);
        let (tools, thinks) = (tools(&given)?, flag(&given, "enable_thinking", true)?);
        let mut options = PromptOptions::default().with_thinking(thinks);
        options.render = render_options(&given)?;
        options.continued = match text(&given, "continue_final_message")? {
            None => ContinuedPart::Nothing,
            Some("content") => ContinuedPart::Content,
            Some("reasoning_content") => ContinuedPart::Reasoning,
            Some(other) => return Err(wrong(format!("$.continue_final_message: {other:?} is not continued"))),
        };
        if flag(&given, "add_generation_prompt", true)? {
            let (text, begins) = format.traced_prompt(messages, tools.as_ref(), &options).map_err(wrong)?;
            put_result(&prompt_json(&text, Some(&text.text()[begins..])));
        } else {
            let render = options.render.with_generation_prompt(false).with_variable("enable_thinking", thinks);
            let text = format.traced_render(messages, tools.as_ref(), &render).map_err(wrong)?;
            put_result(&prompt_json(&text, None));
        }
        Ok(())
    })
}

/// Begins to read a reply: `{"tools": [...], "tool_choice": "auto", "generation_prompt": "...", "json_content": false,
/// "reasoning_format": "auto"}`, all of which may be left out.
#[unsafe(no_mangle)]
pub extern "C" fn tokentrie_parser_new(
    format: u64,
    json: In<c_char>,
    length: usize,
    parser: Out<u64>,
) -> tokentrie_status {
    done(|| {
        parser.check("parser")?;
        let (format, given) = (FORMATS.get(format)?, request(&json, length)?);
        let mut options = ParserOptions::default();
        options.tools = tools(&given)?.map(|tools| known_tools(&tools).map_err(wrong)).transpose()?;
        if let Some(choice) = given.get("tool_choice").filter(|choice| !choice.is_null()) {
            options.tool_choice =
                tool_choice(choice, options.tools.as_ref().unwrap_or(&Tools::default())).map_err(wrong)?;
        }
        options.reasoning = match text(&given, "reasoning_format")? {
            None | Some("auto" | "deepseek") => ReasoningFormat::Auto,
            Some("none") => ReasoningFormat::None,
            Some(other) => return Err(wrong(format!("$.reasoning_format: unknown format {other:?}"))),
        };
        options.prompt = text(&given, "generation_prompt")?.map(str::to_owned);
        options.json_content = flag(&given, "json_content", false)?;
        let made = ReplyParser::new(&format.format, format.over.clone(), options).map_err(wrong)?;
        parser.put(PARSERS.insert(Reading(Some(made)))?);
        Ok(())
    })
}

fn events(events: &[Event]) -> Value {
    events.iter().filter_map(|event| serde_json::from_str::<Value>(&event_json(event)).ok()).collect()
}

fn is_over() -> Error {
    Error::new(TOKENTRIE_ERROR_NOT_ALLOWED, "the reply was finished before")
}

/// Reads more of a reply: what became certain with it, as a list of events in JSON.
#[unsafe(no_mangle)]
pub extern "C" fn tokentrie_parser_push(parser: u64, bytes: In<u8>, length: usize) -> tokentrie_status {
    done(|| {
        let bytes = bytes.slice(length, "bytes")?;
        PARSERS.with(parser, |reading| {
            put_result(&events(&reading.0.as_mut().ok_or_else(is_over)?.push_text(bytes).map_err(wrong)?));
            Ok(())
        })
    })
}

/// The same of tokens of the format's vocabulary. One reply is all bytes or all tokens; a token that ends generation
/// ends it.
#[unsafe(no_mangle)]
pub extern "C" fn tokentrie_parser_push_tokens(parser: u64, tokens: In<i32>, n_tokens: usize) -> tokentrie_status {
    done(|| {
        let tokens = tokens.slice(n_tokens, "tokens")?.iter().map(|&token| TokenId::try_from(token));
        let tokens: Vec<TokenId> = tokens.collect::<std::result::Result<_, _>>()?;
        PARSERS.with(parser, |reading| {
            put_result(&events(&reading.0.as_mut().ok_or_else(is_over)?.push_tokens(&tokens).map_err(wrong)?));
            Ok(())
        })
    })
}

/// The reply is over: `{"events": [...], "message": {...}, "warnings": [...]}`. With `partial` it was cut off.
#[unsafe(no_mangle)]
pub extern "C" fn tokentrie_parser_finish(parser: u64, partial: i32) -> tokentrie_status {
    done(|| {
        PARSERS.with(parser, |reading| {
            let (last, message) = reading.0.take().ok_or_else(is_over)?.finish(partial != 0);
            let warnings = &message.warnings;
            put_result(&json!({"events": events(&last), "message": message_json(&message), "warnings": warnings}));
            Ok(())
        })
    })
}

/// Frees the handle of a format.
#[unsafe(no_mangle)]
pub extern "C" fn tokentrie_format_free(format: u64) -> tokentrie_status {
    done(|| FORMATS.free(format))
}

/// Frees the handle of a parser.
#[unsafe(no_mangle)]
pub extern "C" fn tokentrie_parser_free(parser: u64) -> tokentrie_status {
    done(|| PARSERS.free(parser))
}
