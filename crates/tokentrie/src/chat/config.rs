//! The files of a model as `transformers` keeps them.

use chat_format::response_template::{ResponseError, ResponseTemplate};
use chat_format::{ChatFormat, ChatTemplate, TemplateError};
use serde_json::Value;
use std::path::{Path, PathBuf};
use trie_core::ErrorKind;

/// The name of the file with the settings of a tokenizer.
const CONFIG: &str = "tokenizer_config.json";
/// The name of the file with the chat template.
const TEMPLATE: &str = "chat_template.jinja";

/// Error of a `tokenizer_config.json`.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("{}: {error}", .path.display())]
    File {
        /// Path of the file.
        path: PathBuf,
        /// Error of the system.
        error: std::io::Error,
    },
    /// The chat template is faulty.
    #[error(transparent)]
    Template(#[from] TemplateError),
    /// The file is not JSON, or the response template is faulty.
    #[error(transparent)]
    Response(#[from] ResponseError),
    /// There is neither a chat template nor a response template.
    #[error("{} has neither chat_template nor response_template, and no {TEMPLATE} beside it", .path.display())]
    Nothing {
        /// Path of the file.
        path: PathBuf,
    },
}

impl ConfigError {
    /// Returns what kind of error it is.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::File { .. } => ErrorKind::File,
            Self::Template(_) | Self::Nothing { .. } => ErrorKind::Template,
            Self::Response(error) => error.kind(),
        }
    }
}

/// Reads the format of a model's folder, or of its `tokenizer_config.json`: the chat template with its tokens, and the
/// response template if there is one. `control` are the texts of the vocabulary's control tokens.
///
/// # Errors
/// A file cannot be read, a template is faulty, or there is none.
pub fn format_from_config(path: &Path, control: Vec<String>) -> Result<ChatFormat, ConfigError> {
    let path = if path.is_dir() { path.join(CONFIG) } else { path.to_owned() };
    let read =
        |path: &Path| std::fs::read_to_string(path).map_err(|error| ConfigError::File { path: path.to_owned(), error });
    let wrong = |error: serde_json::Error| {
        let at = format!("{}: ", path.display());
        ConfigError::Response(ResponseError::Template { at, reason: format!("it is not JSON: {error}") })
    };
    let config: Value = serde_json::from_str(&read(&path)?).map_err(wrong)?;
    let said = config.get("response_template").filter(|said| !said.is_null());
    let said = said.map(ResponseTemplate::new).transpose()?;
    let beside = path.with_file_name(TEMPLATE);
    let text = if beside.is_file() { Some(read(&beside)?) } else { template_of(&config).map(str::to_owned) };
    let Some(text) = text else {
        let said = said.ok_or_else(|| ConfigError::Nothing { path: path.clone() })?;
        return Ok(ChatFormat::from_response_template(&said)?);
    };
    let token = |name: &str| {
        let token = &config[name];
        token.as_str().or_else(|| token["content"].as_str()).unwrap_or_default().to_owned()
    };
    let template = ChatTemplate::new(text, token("bos_token"), token("eos_token"))?;
    let format = ChatFormat::with_control_tokens(template, control)?;
    Ok(match said {
        Some(said) => format.with_response_template(&said),
        None => format,
    })
}

/// The chat template of a configuration: a text, or the one called `default` of a list.
fn template_of(config: &Value) -> Option<&str> {
    let template = &config["chat_template"];
    template.as_str().or_else(|| {
        let list = template.as_array()?;
        let default = list.iter().find(|template| template["name"] == "default");
        default.or(list.first())?["template"].as_str()
    })
}
