//! Texts of a reply on their way into the message: content, reasoning, headers, and text whose kind is still unknown.

use super::{Builder, LONGEST_HEADER};
use crate::machine::Region;
use crate::reply::message::{Event, ReasoningFormat};

impl Builder {
    pub(super) fn text_of(&mut self, region: Region, text: &[u8]) {
        match region {
            Region::Reasoning => self.say_reasoning(text),
            Region::Fresh | Region::Outside | Region::Content if !self.prelude => self.say_content(text),
            Region::Header if !self.prelude => self.say_header(text),
            Region::Elsewhere | Region::Over | Region::Fresh | Region::Outside | Region::Content | Region::Header => {}
        }
    }

    pub(super) fn say_content(&mut self, text: &[u8]) {
        let mut out = String::new();
        self.content.push(text, &mut out);
        if !out.is_empty() {
            self.say(Event::Content(out));
        }
    }

    /// Drops the held text, which is not part of the reply.
    pub(in crate::reply) fn forget(&mut self) {
        self.held.clear();
    }

    /// Notes that the first text of the reply may be reasoning.
    pub(in crate::reply) fn is_unsure(&mut self) {
        self.unsure = Some(Vec::new()).filter(|_| self.format == ReasoningFormat::Auto);
    }

    /// Treats possible reasoning as content.
    pub(super) fn unsure_was_content(&mut self) {
        if let Some(text) = self.unsure.take() {
            self.say_content(&text);
        }
    }

    pub(super) fn say_reasoning(&mut self, text: &[u8]) {
        if let Some(unsure) = &mut self.unsure {
            return unsure.extend_from_slice(text);
        }
        if self.format == ReasoningFormat::None {
            if let Some(opened) = &mut self.opened {
                opened.extend_from_slice(text);
                if !text.is_empty() && !text.trim_ascii().is_empty() {
                    let opened = self.opened.take().unwrap_or_default();
                    self.say_content(&opened);
                }
                return;
            }
            return self.say_content(text);
        }
        let mut out = String::new();
        self.reasoning.push(text, &mut out);
        if !out.is_empty() {
            self.say(Event::Reasoning(out));
        }
    }

    /// Treats a header that is too long as text.
    pub(super) fn say_header(&mut self, text: &[u8]) {
        if self.header_is_text {
            return self.say_content(text);
        }
        self.header.extend_from_slice(text);
        if self.header.len() > LONGEST_HEADER {
            self.header_was_text();
            self.header_is_text = true;
        }
    }

    /// Treats a header without a known meaning as text.
    pub(super) fn header_was_text(&mut self) {
        let header = std::mem::take(&mut self.header);
        if !header.is_empty() {
            self.say_content(&header);
        }
    }
}
