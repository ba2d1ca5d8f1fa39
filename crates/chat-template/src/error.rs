//! Errors of templates: while one is parsed, and while it is rendered.

use std::fmt;

/// Error of a template, or of a rendering with it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// The template is not Jinja.
    #[error("syntax error in line {line}: {reason}")]
    Syntax {
        /// Line of the template, from 1.
        line: u32,
        /// Found and expected syntax.
        reason: String,
    },
    /// The template called `raise_exception`.
    #[error("refused in line {line}: {message}")]
    Refused {
        /// Line of the template, from 1.
        line: u32,
        /// Message of the template.
        message: String,
    },
    /// A value that does not exist was used.
    #[error("undefined in line {line}: {reason}")]
    Undefined {
        /// Line of the template, from 1.
        line: u32,
        /// Description of the missing thing.
        reason: String,
    },
    /// A value of the wrong type or out of range, as in Python.
    #[error("line {line}: {reason}")]
    Value {
        /// Line of the template, from 1.
        line: u32,
        /// Error message of Python, or nearly.
        reason: String,
    },
    /// Refused by the sandbox of transformers, such as a change of a list.
    #[error("not allowed in a template, line {line}: {reason}")]
    Forbidden {
        /// Line of the template, from 1.
        line: u32,
        /// Description of the attempt.
        reason: String,
    },
    /// A part of Jinja2 that is not supported.
    #[error("not supported, line {line}: {reason}")]
    Unsupported {
        /// Line of the template, from 1.
        line: u32,
        /// Name of the unsupported feature.
        reason: String,
    },
    /// More work, memory or depth than a template may use.
    #[error("too much in line {line}: {reason}")]
    Limit {
        /// Line of the template, from 1; 0 if the data is too large.
        line: u32,
        /// Name of the quantity, and its limit.
        reason: String,
    },
    /// The operating system gave no thread to render in.
    #[error("no thread to render in: {reason}")]
    Thread {
        /// Message of the host.
        reason: String,
    },
}

impl TemplateError {
    /// Line of the template, from 1; 0 if the error belongs to no line.
    pub fn line(&self) -> u32 {
        match self {
            Self::Syntax { line, .. }
            | Self::Refused { line, .. }
            | Self::Undefined { line, .. }
            | Self::Value { line, .. }
            | Self::Forbidden { line, .. }
            | Self::Unsupported { line, .. }
            | Self::Limit { line, .. } => *line,
            Self::Thread { .. } => 0,
        }
    }
}

/// The kinds of [`TemplateError`] that have a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Syntax,
    Refused,
    Undefined,
    Value,
    Forbidden,
    Unsupported,
    Limit,
}

/// An error on its way to the caller. The first function that knows the line writes it.
#[derive(Debug)]
pub(crate) struct Fault(Box<(Kind, String, Option<u32>)>);

pub(crate) type Res<T> = Result<T, Fault>;

impl Fault {
    #[cold]
    pub(crate) fn new(kind: Kind, reason: impl Into<String>) -> Self {
        Self(Box::new((kind, reason.into(), None)))
    }

    pub(crate) fn with_line(mut self, line: u32) -> Self {
        self.0.2.get_or_insert(line);
        self
    }

    pub(crate) fn kind(&self) -> Kind {
        self.0.0
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0.1)
    }
}

/// The error for a value that makes Python raise `TypeError` or `ValueError`.
pub(crate) fn wrong<T>(reason: impl Into<String>) -> Res<T> {
    Err(Fault::new(Kind::Value, reason))
}

/// The error for an exceeded limit.
pub(crate) fn too_much<T>(reason: impl Into<String>) -> Res<T> {
    Err(Fault::new(Kind::Limit, reason))
}

impl From<Fault> for TemplateError {
    fn from(fault: Fault) -> Self {
        let (kind, reason, line) = *fault.0;
        let line = line.unwrap_or(0);
        match kind {
            Kind::Syntax => Self::Syntax { line, reason },
            Kind::Refused => Self::Refused { line, message: reason },
            Kind::Undefined => Self::Undefined { line, reason },
            Kind::Value => Self::Value { line, reason },
            Kind::Forbidden => Self::Forbidden { line, reason },
            Kind::Unsupported => Self::Unsupported { line, reason },
            Kind::Limit => Self::Limit { line, reason },
        }
    }
}
