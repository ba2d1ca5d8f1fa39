//! Finds the [`Dialect`] of a template by comparing what it renders.
//!
//! It renders conversations that differ in one thing. They contain needles, which are texts that occur in no template.
//! The markers are where the renderings differ. No template is known by its name or its text. Properties that a
//! comparison cannot show come from one table, `families`, which recognises a family by the shapes of its markers.
//!
//! ```text
//!   probe     conversations with needles
//!   frame     turns, reasoning, marked content      <- reasoning
//!   calls     sections, calls, what is between      <- object, arguments, parts
//!   families  what cannot be rendered
//! ```

mod calls;
mod capabilities;
mod export;
mod families;
mod frame;
mod names;
pub(crate) mod own_marks;
mod probe;
mod prompt;
mod reasoning;
mod shaped;
pub mod text;
mod tool_fields;
mod tools_in;

pub use capabilities::Capabilities;
pub use names::Names;
pub(crate) use prompt::with_usual_variables;
pub use prompt::{ContinuedPart, PromptOptions};
pub use tools_in::ToolsIn;

use crate::dialect::{ContentMode, Dialect, Part, Pattern, ReasoningMode};
use calls::RenderedCalls;
use chat_template::{ChatTemplate, TemplateError};
use frame::{Frame, ReasoningSource};
use probe::Probe;

/// Analysis of a template: how its model writes replies.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Analysis {
    /// Syntax that the template gives to the model's replies.
    pub dialect: Dialect,
    /// Features of the template.
    pub capabilities: Capabilities,
    /// Beginning of a reply with thinking on, as `add_generation_prompt` adds it.
    pub prompt_thinking: String,
    /// The same with thinking off.
    pub prompt_not_thinking: String,
    /// True if the prompt with thinking off closes the reasoning, so that the model does not think.
    pub closes_reasoning: bool,
    /// Texts with which a call can begin.
    pub triggers: Vec<String>,
    /// Markers that must not be lost when tokens are detokenised.
    pub preserved: Vec<String>,
    /// Properties taken from the table of families instead of a comparison, in words.
    pub families: Vec<&'static str>,
    /// Peculiarities of the template.
    pub warnings: Vec<String>,
    /// First failure of the check of the analysis, if any.
    pub degraded: Option<String>,
    /// Differences between the template and the response template that was given beside it: replies that the response
    /// template reads otherwise, and parts of it that are not followed.
    pub differences: Vec<String>,
    /// True if the template used up the budget.
    pub(crate) spent: bool,
    continued: prompt::Continuing,
    /// Syntax of calls, if the template renders none and its prompt shows it.
    pub(crate) told: Option<calls::Example>,
    /// Place of the tools in the prompt.
    tools_in: ToolsIn,
    /// A call as the system message shows it, if that message describes tools.
    call_shown: String,
    /// True if the template shows tools to the model, as a list or as a text.
    shows_tools: bool,
}

impl Analysis {
    /// Number of families in the table.
    pub const FAMILIES: usize = families::COUNT;

    /// Analyses a template.
    ///
    /// The same template always gives the same analysis. It takes some milliseconds, and at most the work of one
    /// rendering, however long the template computes.
    ///
    /// # Errors
    /// The template cannot even render a user message.
    ///
    /// ```
    /// use chat_format::analysis::Analysis;
    /// use chat_format::{ChatTemplate, dialect::ReasoningMode};
    ///
    /// let template = ChatTemplate::new(
    ///     "{% for m in messages %}<|{{ m.role }}|>\
    ///      {% if m.reasoning_content %}<think>{{ m.reasoning_content }}</think>{% endif %}{{ m.content }}\n\
    ///      {% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}",
    ///     "",
    ///     "",
    /// )?;
    /// let analysis = Analysis::from_template(&template)?;
    /// assert_eq!(analysis.dialect.reasoning.mode, ReasoningMode::Optional);
    /// assert_eq!(analysis.dialect.reasoning.start, "<think>");
    /// assert_eq!(analysis.prompt_thinking, "<|assistant|>");
    /// # Ok::<(), chat_format::TemplateError>(())
    /// ```
    pub fn from_template(template: &ChatTemplate) -> Result<Self, TemplateError> {
        Self::with_control_tokens(template, &[])
    }

    /// The same for a vocabulary with control tokens of these texts.
    pub(crate) fn with_control_tokens(template: &ChatTemplate, control: &[String]) -> Result<Self, TemplateError> {
        template.in_session(|session| {
            let probe = Probe::new(session, template.text(), control);
            let frame = frame::frame(&probe)?;
            let written =
                calls::find_rendered(&probe, &frame).next().or_else(|| calls::infer_from_prompt(&probe, &frame));
            let analysis = analyse(&probe, frame.clone(), written.unwrap_or_default());
            // What nothing else tells, the vocabulary may.
            let guess = Some(&analysis.dialect).filter(|dialect| dialect.calls.is_none());
            let guess = guess.and_then(|_| calls::infer_from_vocabulary(&probe, &frame));
            Ok(guess.map_or(analysis, |written| analyse(&probe, frame, written)))
        })?
    }

    /// The analysis without a template, of a format that is known.
    pub(crate) fn of_dialect(dialect: Dialect) -> Self {
        let start = dialect.turns.assistant.clone();
        let none = Self { prompt_thinking: start.clone(), prompt_not_thinking: start, ..Self::default() };
        none.with_dialect(dialect)
    }

    /// The same analysis with another syntax of replies.
    pub(crate) fn with_dialect(&self, dialect: Dialect) -> Self {
        let mut analysis = self.clone();
        analysis.triggers = names::triggers(&dialect);
        for marker in names::preserved_markers(&dialect, [""; 3]) {
            if !analysis.preserved.contains(&marker) {
                analysis.preserved.push(marker);
            }
        }
        analysis.dialect = dialect;
        analysis
    }

    /// Returns the place of the tools in the prompt.
    pub fn tools_in(&self) -> ToolsIn {
        self.tools_in
    }

    /// Returns whether the template shows tools to the model: as a list, or as a text under the name `functions`.
    pub fn shows_tools(&self) -> bool {
        self.shows_tools
    }

    /// Returns the place of tools in the prompt if nobody asks for another: the template, or the system message if the
    /// template shows no tools or writes no calls.
    pub fn place_of_tools(&self) -> ToolsIn {
        if self.shows_tools && self.dialect.calls.is_some() { ToolsIn::Template } else { ToolsIn::System }
    }

    /// Returns other hypotheses about a template whose analysis fails the check, the likeliest first.
    pub(crate) fn other_hypotheses(template: &ChatTemplate, control: &[String]) -> Result<Vec<Self>, TemplateError> {
        template.in_session(|session| {
            let probe = Probe::new(session, template.text(), control);
            let first = frame::frame(&probe)?;
            let second = frame::grid::frame(&probe, &first);
            let of = |frame: &Frame| {
                let mut ways: Vec<RenderedCalls> = Vec::new();
                for written in calls::find_rendered(&probe, frame) {
                    for written in written.otherwise() {
                        if !ways.contains(&written) {
                            ways.push(written);
                        }
                    }
                }
                if ways.is_empty() { vec![calls::infer_from_prompt(&probe, frame).unwrap_or_default()] } else { ways }
            };
            let mut found: Vec<Self> = Vec::new();
            for frame in second.iter().chain([&first]) {
                for written in of(frame) {
                    let analysis = analyse(&probe, frame.clone(), written);
                    if found.len() < MOST_HYPOTHESES && !found.contains(&analysis) {
                        found.push(analysis);
                    }
                }
            }
            Ok(found)
        })?
    }
}

/// Limit on the number of hypotheses that are tried.
const MOST_HYPOTHESES: usize = 16;

fn analyse(probe: &Probe, mut frame: Frame, written: RenderedCalls) -> Analysis {
    let mut dialect = Dialect { calls: written.calls.clone(), ..Dialect::default() };
    if let Some(header) = frame.header.strip_suffix(written.begun.as_str()).filter(|_| !written.begun.is_empty()) {
        frame.header = header.to_owned();
        if frame.content.mode == ContentMode::Wrapped {
            frame.content.start = format!("{}{}", written.begun, frame.content.start);
        }
    }
    // What ends calls too ends the turn, not its content; but what closes its mark belongs to that.
    let is_closed = text::closes(text::last_tag(&frame.content.start, None), text::first_tag(&frame.content.end, None));
    if frame.content.end.trim() == frame.turn_end.trim() && written.ends_like_others && !is_closed {
        frame.content.end.clear();
    }
    dialect.joints = joints(&frame, &written);
    let goes_on = !dialect.joints.is_empty();
    dialect.joints.extend(Some(written.separator.clone()).filter(|mark| !mark.is_empty()));
    dialect.reasoning = frame.reasoning.clone();
    dialect.content = frame.content.clone();
    dialect.turns = frame.turns.clone();
    dialect.turns.end = frame::end_of_turn(&frame);
    if dialect.content.mode == ContentMode::Plain && is_line_shared(&frame, &dialect) {
        "\n".clone_into(&mut dialect.content.start);
    }
    // A marker of its own that ends a turn with calls, where such turns do not go on.
    let end = written.turn_end.trim();
    if !goes_on && matches!(text::segments(end)[..], [text::Segment::Marker(_)]) {
        end.clone_into(&mut dialect.turns.end_of_calls);
    }
    let mut warnings = Vec::new();
    let families = families::complete(probe, &frame, &mut dialect);
    drop_needles(probe, &mut dialect, &mut warnings);
    let spent = probe.is_spent();
    if spent {
        warnings.push("the template computes so much that not all of it was looked at".into());
    }
    if probe.changes_lists() {
        let how = "a ChatFormat lets its own lists grow, a ChatTemplate refuses such conversations";
        warnings.push(format!("the template changes lists, which Jinja2's sandbox refuses: {how}"));
    }
    if let Some(known) = written.told.as_ref().filter(|_| dialect.calls.is_some()) {
        let how = &known.by;
        warnings
            .push(format!("the template renders no calls of tools: they are read, and written into the text, {how}"));
    }
    let mut continued = prompt::Continuing::new(&frame, &dialect);
    continued.null_content = written.null_content;
    written.turn_end.trim().clone_into(&mut continued.end_of_calls);
    if dialect.reasoning.mode == ReasoningMode::OpenedByPrompt && dialect.reasoning.start.is_empty() {
        // It begins where the turn begins.
        dialect.reasoning.start.clone_from(&frame.header);
    }
    let closes_reasoning = closes_reasoning(&frame, &dialect);
    let capabilities = capabilities::find(probe, &dialect);
    Analysis {
        triggers: names::triggers(&dialect),
        preserved: names::preserved_markers(&dialect, [&frame.turn_end, continued.start(), continued.end()]),
        families,
        capabilities,
        prompt_thinking: frame.prompts.thinking,
        prompt_not_thinking: frame.prompts.not_thinking,
        closes_reasoning,
        warnings,
        degraded: None,
        differences: Vec::new(),
        spent,
        continued,
        told: written.told.map(|known| known.example),
        tools_in: ToolsIn::Template,
        call_shown: String::new(),
        shows_tools: capabilities.tools || capabilities::shows_functions(probe),
        dialect,
    }
}

/// Returns whether the line of the header continues with a sign and the name of a call: headers are lines, and the
/// prompt ends in one.
fn is_line_shared(frame: &Frame, dialect: &Dialect) -> bool {
    let is_sign = |pattern: &Pattern| {
        let parts = &pattern.parts[..];
        pattern.at_start_only
            && matches!(parts, [Part::Text(head), Part::Name, ..] if !head.trim().starts_with(char::is_alphanumeric))
    };
    let mut patterns = dialect.calls.iter().flat_map(|calls| &calls.patterns);
    let prompt = &frame.prompts.thinking;
    let is_line = !prompt.is_empty() && !prompt.ends_with('\n');
    is_line
        && [&dialect.turns.assistant, &dialect.turns.user].iter().any(|turn| turn.ends_with('\n'))
        && patterns.next().is_some_and(is_sign)
}

/// Returns the text between the messages of a reply, if it has several.
fn joints(frame: &Frame, written: &calls::RenderedCalls) -> Vec<String> {
    let mut joints: Vec<String> = Vec::new();
    if frame.header_again || !written.joints.is_empty() {
        let ends = [frame.reasoning.end.as_str(), frame.turn_end.as_str(), written.turn_end.as_str()];
        let all = std::iter::once(frame.header.as_str()).chain(ends).chain(written.joints.iter().map(String::as_str));
        for joint in all.map(str::trim).filter(|joint| !joint.is_empty()) {
            if !joints.iter().any(|other| other == joint) {
                joints.push(joint.to_owned());
            }
        }
    }
    joints
}

fn closes_reasoning(frame: &Frame, dialect: &Dialect) -> bool {
    let (reasoning, prompts) = (&dialect.reasoning, &frame.prompts);
    reasoning.mode != ReasoningMode::None
        && prompts.thinking != prompts.not_thinking
        && !reasoning.end.trim().is_empty()
        && prompts.not_thinking.trim_end().ends_with(reasoning.end.trim())
}

/// Drops markers that contain a needle: they come from a comparison that failed.
fn drop_needles(probe: &Probe, dialect: &mut Dialect, warnings: &mut Vec<String>) {
    let has = |text: &str| text.contains(&probe.needles.stem);
    let reasoning = &dialect.reasoning;
    if has(&reasoning.start) || has(&reasoning.end) {
        warnings.push("how the template marks reasoning could not be told".into());
        dialect.reasoning = crate::dialect::Reasoning::default();
    }
    if has(&dialect.content.start) || has(&dialect.content.end) {
        warnings.push("how the template marks content could not be told".into());
        dialect.content = crate::dialect::Content::default();
    }
    if has(&dialect.turns.user) || has(&dialect.turns.assistant) {
        warnings.push("where the template begins turns could not be told".into());
        dialect.turns = crate::dialect::Turns::default();
    }
    if dialect.calls.as_ref().is_some_and(|calls| has(&format!("{calls:?}"))) {
        warnings.push("how the template writes calls could not be told".into());
        dialect.calls = None;
    }
    dialect.joints.retain(|joint| !has(joint));
}

impl ReasoningSource {
    /// Returns whether the template supports reasoning at all.
    pub(super) fn is_somewhere(self) -> bool {
        self != Self::Nowhere
    }
}
