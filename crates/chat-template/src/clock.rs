//! What `strftime_now` says.

use crate::error::{Res, too_much, wrong};
use jiff::Zoned;
use jiff::civil::DateTime;
use std::fmt::Write;

/// The time that a template sees.
///
/// ```
/// use chat_template::{ChatTemplate, Clock, RenderOptions};
///
/// let template = ChatTemplate::new("{{ strftime_now('%d %b %Y') }}", "", "")?;
/// let clock = Clock::at(2024, 7, 26, 12, 0, 0).expect("a date");
/// let text = template.render(&[].into(), None, &RenderOptions::default().with_clock(clock))?;
/// assert_eq!(text, "26 Jul 2024");
/// # Ok::<(), chat_template::TemplateError>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Clock(Option<DateTime>);

impl Clock {
    /// The local time of this machine.
    pub fn system() -> Self {
        Self(None)
    }

    /// Always this local time; nothing if there is no such day or time.
    pub fn at(year: i16, month: i8, day: i8, hour: i8, minute: i8, second: i8) -> Option<Self> {
        DateTime::new(year, month, day, hour, minute, second, 0).ok().map(|time| Self(Some(time)))
    }

    /// The same with a fraction of a second.
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
        let now = self.0.unwrap_or_else(|| Zoned::now().datetime());
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

fn part(now: DateTime, format: &str) -> Res<String> {
    match jiff::fmt::strtime::format(format, now) {
        Ok(text) => Ok(text),
        Err(error) => wrong(format!("strftime {format:?}: {error}")),
    }
}
