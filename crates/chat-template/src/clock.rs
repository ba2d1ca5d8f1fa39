//! The clock that `strftime_now` of a template reads.

use crate::error::{Res, too_much, wrong};
use jiff::civil::DateTime;
use std::fmt::Write;
use std::sync::OnceLock;

/// The time that a template sees.
///
/// ```
/// use chat_template::{ChatTemplate, Clock, RenderOptions};
///
/// let template = ChatTemplate::new("{{ strftime_now('%d %b %Y') }}", "", "")?;
/// let clock = Clock::from_local_time(2024, 7, 26, 12, 0, 0).expect("a date");
/// let text = template.render(&[].into(), None, &RenderOptions::default().with_clock(clock))?;
/// assert_eq!(text, "26 Jul 2024");
/// # Ok::<(), chat_template::TemplateError>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Clock(Option<DateTime>);

impl Clock {
    /// The local time of this machine. In WebAssembly it is the clock that [`Clock::lend`] was given, or else a
    /// constant time.
    pub fn system() -> Self {
        Self(None)
    }

    /// Lends this library the local time of its host in WebAssembly, where there is no clock. Only the first call
    /// counts.
    pub fn lend(clock: fn() -> Self) {
        let _ = LENT.set(clock);
    }

    /// A clock that always shows this local time; `None` if there is no such day or time.
    pub fn from_local_time(year: i16, month: i8, day: i8, hour: i8, minute: i8, second: i8) -> Option<Self> {
        DateTime::new(year, month, day, hour, minute, second, 0).ok().map(|time| Self(Some(time)))
    }

    /// A clock that always shows the local time this many milliseconds after the beginning of 1970; `None` if there is
    /// no such day.
    pub fn at_milliseconds(milliseconds: i64) -> Option<Self> {
        let span = jiff::SignedDuration::from_millis(milliseconds);
        DateTime::constant(1970, 1, 1, 0, 0, 0, 0).checked_add(span).ok().map(|time| Self(Some(time)))
    }

    /// The same clock with a fraction of a second.
    #[must_use]
    pub fn with_microsecond(self, microsecond: i32) -> Self {
        let with = |time: DateTime| time.with().subsec_nanosecond(microsecond.saturating_mul(1000)).build().ok();
        Self(self.0.map(|time| with(time).unwrap_or(time)))
    }

    /// Date and time as `2024-07-26 12:00:00`.
    pub fn date_and_time(&self) -> String {
        // Fails for formats that are too long alone, and this one is not.
        self.strftime("%Y-%m-%d %H:%M:%S").unwrap_or_default()
    }

    /// Python's `datetime.now().strftime(format)`.
    pub(crate) fn strftime(&self, format: &str) -> Res<String> {
        const LONGEST: usize = 1 << 16;
        if format.len() > LONGEST {
            return too_much(format!("a time format of {} bytes: at most {LONGEST}", format.len()));
        }
        let now = self.0.unwrap_or_else(local_time);
        let mut out = String::new();
        let mut rest = format;
        while let Some(at) = rest.find('%') {
            out.push_str(&rest[..at]);
            let code = &rest[at..];
            let flags = code[1..].find(|flag: char| !"-_0^#".contains(flag)).map_or(code.len(), |end| end + 1);
            let letter = code[flags..].chars().next();
            let Some(letter) = letter else {
                out.push_str(code);
                return Ok(out);
            };
            let end = flags + letter.len_utf8();
            match letter {
                // Python's own, and those that a time without a zone leaves empty.
                'f' => {
                    // Writing to a string cannot fail.
                    let _ = write!(out, "{:06}", now.subsec_nanosecond() / 1000);
                }
                'Z' | 'z' => {}
                '%' => out.push('%'),
                'c' => out.push_str(&part(now, "%a %b %e %H:%M:%S %Y")?),
                'x' => out.push_str(&part(now, "%m/%d/%y")?),
                'X' => out.push_str(&part(now, "%H:%M:%S")?),
                'r' => out.push_str(&part(now, "%I:%M:%S %p")?),
                'Y' | 'm' | 'd' | 'H' | 'M' | 'S' | 'B' | 'b' | 'h' | 'A' | 'a' | 'j' | 'y' | 'p' | 'P' | 'I' | 'e'
                | 'k' | 'l' | 'U' | 'W' | 'V' | 'G' | 'g' | 'u' | 'w' | 'D' | 'F' | 'T' | 'R' | 'C' | 'n' | 't' => {
                    out.push_str(&part(now, &code[..end])?);
                }
                // As the C library does with what it does not know.
                _ => out.push_str(&code[..end]),
            }
            rest = &code[end..];
        }
        out.push_str(rest);
        Ok(out)
    }
}

/// The clock of a host that lends one.
static LENT: OnceLock<fn() -> Clock> = OnceLock::new();

#[cfg(not(target_family = "wasm"))]
fn local_time() -> DateTime {
    jiff::Zoned::now().datetime()
}

#[cfg(target_family = "wasm")]
fn local_time() -> DateTime {
    LENT.get().and_then(|lent| lent().0).unwrap_or(DateTime::constant(1970, 1, 1, 0, 0, 0, 0))
}

fn part(now: DateTime, format: &str) -> Res<String> {
    match jiff::fmt::strtime::format(format, now) {
        Ok(text) => Ok(text),
        Err(error) => wrong(format!("strftime {format:?}: {error}")),
    }
}
