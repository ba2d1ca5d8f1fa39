//! Sampling settings: each with its default and range, in the one table that hosts read.

/// Settings of a draw. The default changes nothing: temperature 1 and no truncation. [`DrawSettings::ALL`] describes
/// each of them.
#[derive(Debug, Clone, Copy, PartialEq)]
#[expect(missing_docs, reason = "each is described once, in the table that hosts read")]
pub struct DrawSettings {
    pub temperature: f32,
    pub top_k: u32,
    pub top_p: f32,
    pub min_p: f32,
    pub typical_p: f32,
    pub repeat_penalty: f32,
    pub presence_penalty: f32,
    pub frequency_penalty: f32,
    pub penalty_last_n: i32,
}

/// One sampling setting, for hosts that read settings by name.
#[derive(Debug, Clone, Copy)]
pub struct DrawSetting {
    /// Name of the setting, the same in every host.
    pub name: &'static str,
    /// Description for help texts.
    pub about: &'static str,
    /// Default value, which has no effect.
    pub default: f32,
    /// Valid range, in words.
    pub range: &'static str,
    /// True if the value is a whole number.
    pub is_count: bool,
    /// True if it changes which token is the best, so that a greedy choice heeds it too.
    pub is_for_greedy: bool,
    /// Another value that has no effect on a greedy choice.
    greedy: f32,
    least: f64,
    most: f64,
    field: Field,
}

#[derive(Debug, Clone, Copy)]
enum Field {
    Number(fn(&mut DrawSettings) -> &mut f32),
    Count(fn(&mut DrawSettings) -> &mut u32),
    Last(fn(&mut DrawSettings) -> &mut i32),
}

/// A setting out of range.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[error("{name} is {}: it must be {range}", format_value(*.value))]
pub struct DrawError {
    /// Name of the setting.
    pub name: &'static str,
    /// The value that is invalid.
    pub value: f64,
    /// Valid range of the setting.
    pub range: &'static str,
}

crate::error_kind!(DrawError, Argument);

/// The value as it was given: whole numbers exactly, others as the single that they were rounded to.
fn format_value(value: f64) -> String {
    if value.fract() == 0.0 { value.to_string() } else { (value as f32).to_string() }
}

const SHARE: &str = "from 0 to 1";

impl DrawSetting {
    const fn share(name: &'static str, about: &'static str, default: f32, field: Field) -> Self {
        let (is_count, is_for_greedy) = (false, false);
        Self {
            name,
            about,
            default,
            range: SHARE,
            is_count,
            is_for_greedy,
            greedy: default,
            least: 0.0,
            most: 1.0,
            field,
        }
    }

    /// Any number that is finite.
    const fn penalty(name: &'static str, about: &'static str, field: Field) -> Self {
        let (is_count, is_for_greedy, most) = (false, true, f32::MAX as f64);
        Self {
            name,
            about,
            default: 0.0,
            range: "finite",
            is_count,
            is_for_greedy,
            greedy: 0.0,
            least: -most,
            most,
            field,
        }
    }

    /// Returns the value of the setting.
    pub fn get(&self, mut settings: DrawSettings) -> f64 {
        match self.field {
            Field::Number(field) => f64::from(*field(&mut settings)),
            Field::Count(field) => f64::from(*field(&mut settings)),
            Field::Last(field) => f64::from(*field(&mut settings)),
        }
    }

    /// # Errors
    /// A value out of its range; a count is a whole number.
    pub fn set(&self, settings: &mut DrawSettings, value: f64) -> Result<(), DrawError> {
        match self.field {
            Field::Number(field) => *field(settings) = self.check_range(f64::from(value as f32))? as f32,
            Field::Count(field) => *field(settings) = self.check_range(value)? as u32,
            Field::Last(field) => *field(settings) = self.check_range(value)? as i32,
        }
        Ok(())
    }

    /// Returns whether it may be negative.
    pub fn is_signed(&self) -> bool {
        self.least < 0.0
    }

    /// Returns whether this value has no effect on a greedy choice.
    pub fn is_lost_in_greedy(&self, value: f64) -> bool {
        !self.is_for_greedy && ![self.default, self.greedy].map(f64::from).contains(&value)
    }

    fn check_range(&self, value: f64) -> Result<f64, DrawError> {
        let is_whole = !self.is_count || value.fract() == 0.0;
        if (self.least..=self.most).contains(&value) && is_whole {
            return Ok(value);
        }
        Err(DrawError { name: self.name, value, range: self.range })
    }
}

impl Default for DrawSettings {
    fn default() -> Self {
        Self {
            temperature: 1.0,
            top_k: 0,
            top_p: 1.0,
            min_p: 0.0,
            typical_p: 1.0,
            repeat_penalty: 1.0,
            presence_penalty: 0.0,
            frequency_penalty: 0.0,
            penalty_last_n: 64,
        }
    }
}

impl DrawSettings {
    /// All of them, in the order in which hosts list them.
    pub const ALL: [DrawSetting; 9] = [
        DrawSetting {
            name: "temperature",
            about: "divides the logits; 0 takes the highest",
            default: 1.0,
            range: "finite and at least 0",
            is_count: false,
            is_for_greedy: false,
            greedy: 0.0,
            least: 0.0,
            most: f32::MAX as f64,
            field: Field::Number(|settings| &mut settings.temperature),
        },
        DrawSetting {
            name: "top_k",
            about: "keep the k highest logits; 0 keeps all",
            default: 0.0,
            range: "an integer from 0 to 2**32 - 1",
            is_count: true,
            is_for_greedy: false,
            greedy: 1.0,
            least: 0.0,
            most: u32::MAX as f64,
            field: Field::Count(|settings| &mut settings.top_k),
        },
        DrawSetting::share(
            "top_p",
            "keep the fewest tokens whose probabilities add up to this; 1 keeps all",
            1.0,
            Field::Number(|settings| &mut settings.top_p),
        ),
        DrawSetting::share(
            "min_p",
            "keep tokens at least this times as probable as the best; 0 keeps all",
            0.0,
            Field::Number(|settings| &mut settings.min_p),
        ),
        DrawSetting::share(
            "typical_p",
            "keep tokens nearest to the mean surprise until their probabilities add up to this; 1 keeps all",
            1.0,
            Field::Number(|settings| &mut settings.typical_p),
        ),
        DrawSetting {
            default: 1.0,
            range: "finite and more than 0",
            least: f32::MIN_POSITIVE as f64,
            ..DrawSetting::penalty(
                "repeat_penalty",
                "divides logits above 0 of tokens that were written, and multiplies others; 1 changes nothing",
                Field::Number(|settings| &mut settings.repeat_penalty),
            )
        },
        DrawSetting::penalty(
            "presence_penalty",
            "subtracted from the logits of tokens that were written",
            Field::Number(|settings| &mut settings.presence_penalty),
        ),
        DrawSetting::penalty(
            "frequency_penalty",
            "subtracted from the logit of a token for each time it was written",
            Field::Number(|settings| &mut settings.frequency_penalty),
        ),
        DrawSetting {
            default: 64.0,
            range: "an integer from -1 to 2**31 - 1",
            is_count: true,
            least: -1.0,
            most: i32::MAX as f64,
            ..DrawSetting::penalty(
                "penalty_last_n",
                "how many of the last tokens that were written count for penalties; -1 are all, 0 none",
                Field::Last(|settings| &mut settings.penalty_last_n),
            )
        },
    ];

    /// The setting of this name.
    pub fn find_by_name(name: &str) -> Option<DrawSetting> {
        Self::ALL.into_iter().find(|setting| setting.name == name)
    }

    /// # Errors
    /// One out of its range.
    pub fn check(&self) -> Result<(), DrawError> {
        Self::ALL.iter().try_for_each(|setting| setting.check_range(setting.get(*self)).map(drop))
    }

    /// Returns whether written tokens change a logit.
    pub fn has_penalties(&self) -> bool {
        let Self { repeat_penalty, presence_penalty, frequency_penalty, penalty_last_n, .. } = *self;
        penalty_last_n != 0 && (repeat_penalty != 1.0 || presence_penalty != 0.0 || frequency_penalty != 0.0)
    }
}
