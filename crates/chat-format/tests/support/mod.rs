//! The cases and templates that are not in the repository, where their folders are there.

#![allow(dead_code, unreachable_pub, reason = "each test uses its part")]

pub mod random;

use chat_format::{ChatFormat, ChatTemplate, ConstraintOptions, ParserOptions, ReasoningFormat, ToolChoice, Tools};
use serde_json::Value;
use std::collections::BTreeMap;

pub struct Cases {
    pub data: Value,
    pub formats: BTreeMap<String, ChatFormat>,
    tools: BTreeMap<String, Tools>,
}

pub fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn folder(variable: &str, other: &str) -> String {
    std::env::var(variable).unwrap_or_else(|_| format!("{}/../../../shared/{other}", env!("CARGO_MANIFEST_DIR")))
}

/// The real templates by their names, sorted.
pub fn templates() -> Option<Vec<(String, String)>> {
    let templates = folder("TOKENTRIE_TEMPLATE_DIR", "templates");
    let found = templates_in(&templates);
    if found.is_none() {
        eprintln!("skipped: there is no {templates} (TOKENTRIE_TEMPLATE_DIR names the folder)");
    }
    found
}

/// The small templates, one a format, by their names, sorted.
pub fn small_templates() -> Vec<(String, String)> {
    templates_in(&format!("{}/tests/templates", env!("CARGO_MANIFEST_DIR"))).expect("the folder is in the repository")
}

/// One real template.
pub fn template(name: &str) -> Option<ChatTemplate> {
    let path = format!("{}/{name}", folder("TOKENTRIE_TEMPLATE_DIR", "templates"));
    let Ok(text) = std::fs::read_to_string(&path) else {
        eprintln!("skipped: there is no {path} (TOKENTRIE_TEMPLATE_DIR names the folder)");
        return None;
    };
    Some(ChatTemplate::new(text, "", "").expect("real templates are read"))
}

/// The file of cases; `None`, and a line that says so, where it is not there.
pub fn case_file() -> Option<Value> {
    let path = format!("{}/chat_format.json", folder("TOKENTRIE_CASES_DIR", "cases"));
    let Ok(file) = std::fs::read(&path) else {
        eprintln!("skipped: there is no {path} (TOKENTRIE_CASES_DIR names the folder)");
        return None;
    };
    Some(serde_json::from_slice(&file).expect("the cases are JSON"))
}

fn templates_in(folder: &str) -> Option<Vec<(String, String)>> {
    let files = std::fs::read_dir(folder).ok()?;
    let jinja = files.flatten().filter(|file| file.path().extension().is_some_and(|ending| ending == "jinja"));
    let mut found: Vec<(String, String)> = jinja
        .map(|file| (file.file_name().to_string_lossy().into_owned(), std::fs::read_to_string(file.path()).unwrap()))
        .collect();
    found.sort_by(|(one, _), (other, _)| one.trim_end_matches(".jinja").cmp(other.trim_end_matches(".jinja")));
    Some(found)
}

impl Cases {
    /// `None`, and a line that says so, where they are not there.
    pub fn read() -> Option<Self> {
        let data = case_file()?;
        let mut formats = BTreeMap::new();
        for analysis in data["analysis"].as_array().expect("a list of analyses") {
            let name = text(analysis, "template");
            formats.insert(name.to_owned(), ChatFormat::new(template(name)?).expect("real templates are rendered"));
        }
        Some(Self { data, formats, tools: BTreeMap::new() })
    }

    pub fn cases(&self) -> Vec<Value> {
        self.data["cases"].as_array().expect("a list of cases").clone()
    }

    /// The same list of tools each time, so that what was made for it is found again.
    pub fn tools(&mut self, case: &Value) -> Tools {
        let names = case["options"]["tools"].to_string();
        if let Some(tools) = self.tools.get(&names) {
            return tools.clone();
        }
        let list = case["options"]["tools"].as_array().expect("a list of names");
        let list: Vec<Value> =
            list.iter().map(|name| self.data["tools"][name.as_str().expect("a name")].clone()).collect();
        let tools = Tools::new(&list).expect("the tools are good");
        self.tools.insert(names, tools.clone());
        tools
    }

    pub fn parser_options(&mut self, case: &Value) -> ParserOptions {
        let given = &case["options"];
        let mut options = ParserOptions::default();
        options.tools = Some(self.tools(case));
        options.tool_choice = choice(given);
        if text(given, "reasoning_format") == "none" {
            options.reasoning = ReasoningFormat::None;
        }
        options.json_content = given.get("json_schema").is_some_and(|schema| !schema.is_null());
        options.prompt = Some(text(case, "generation_prompt").to_owned());
        options
    }

    pub fn constraint_options(&mut self, case: &Value) -> ConstraintOptions {
        let mut options = ConstraintOptions::default();
        options.tools = self.tools(case);
        options.choice = choice(&case["options"]);
        options.parallel = true;
        options.prompt = Some(text(case, "generation_prompt").to_owned());
        options
    }
}

fn choice(options: &Value) -> ToolChoice {
    match text(options, "tool_choice") {
        "none" => ToolChoice::None,
        "required" => ToolChoice::Required,
        _ => ToolChoice::Auto,
    }
}
