//! What `strftime_now` says.

use crate::calendar::{EPOCH, Moment};
use crate::error::{Res, too_much};
use std::sync::OnceLock;

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
pub struct Clock(Option<Moment>);

impl Clock {
    /// The local time of this machine. In WebAssembly that which [`Clock::lend`] was given, or always the same.
    pub fn system() -> Self {
        Self(None)
    }

    /// Lends this library the local time of its host, in WebAssembly, where there is none. Only the first call counts.
    pub fn lend(clock: fn() -> Self) {
        let _ = LENT.set(clock);
    }

    /// Always this local time; nothing if there is no such day or time.
    pub fn at(year: i16, month: i8, day: i8, hour: i8, minute: i8, second: i8) -> Option<Self> {
        let (day, time) = ([year.into(), month.into(), day.into()], [hour.into(), minute.into(), second.into()]);
        Moment::new(day, time).map(|time| Self(Some(time)))
    }

    /// The local time that is so many milliseconds after the beginning of 1970; nothing where there is no such day.
    pub fn at_milliseconds(milliseconds: i64) -> Option<Self> {
        let microsecond = milliseconds.rem_euclid(1000) * 1000;
        let time = Moment::at_seconds(milliseconds.div_euclid(1000))?;
        Some(Self(Some(time.with_microsecond(microsecond))))
    }

    /// The same with a fraction of a second.
    #[must_use]
    pub fn with_microsecond(self, microsecond: i32) -> Self {
        Self(self.0.map(|time| time.with_microsecond(microsecond.into())))
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
        Ok(self.0.unwrap_or_else(local_time).strftime(format))
    }
}

/// The clock of a host that lends one.
static LENT: OnceLock<fn() -> Clock> = OnceLock::new();

/// What there is of 1970 in WebAssembly without a host that lends a clock.
fn local_time() -> Moment {
    #[cfg(not(target_family = "wasm"))]
    {
        let now = jiff::Zoned::now().datetime();
        let day = [now.year().into(), now.month().into(), now.day().into()];
        let moment = Moment::new(day, [now.hour().into(), now.minute().into(), now.second().into()]);
        let microsecond = i64::from(now.subsec_nanosecond()) / 1000;
        moment.map_or(EPOCH, |moment| moment.with_microsecond(microsecond))
    }
    #[cfg(target_family = "wasm")]
    LENT.get().and_then(|lent| lent().0).unwrap_or(EPOCH)
}
