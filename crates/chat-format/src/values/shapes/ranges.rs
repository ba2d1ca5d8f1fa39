//! Ranges of numbers with fractions, as regular expressions.

use crate::values::shapes::numbers::Bound;

/// Digits that a fraction may have.
const FRACTION: usize = 17;
/// Digits before the point where no bound says.
const WHOLE: usize = 20;

/// The numbers of a range, written without exponents.
pub(crate) fn pattern(low: Option<&Bound>, high: Option<&Bound>) -> String {
    let zero = Bound { negative: false, whole: "".into(), fraction: "".into(), without: false };
    let mut parts = Vec::new();
    // Zero and what is above it.
    if high.is_none_or(|high| !high.negative) {
        let low = low.filter(|low| !low.negative).unwrap_or(&zero);
        parts.push(magnitudes(low, high));
    }
    // What is below it.
    if low.is_none_or(|low| low.negative) {
        let above_zero = Bound { without: true, ..zero.clone() };
        let nearest = high.filter(|high| high.negative).unwrap_or(&above_zero);
        parts.push(format!("-(?:{})", magnitudes(nearest, low)));
    }
    parts.join("|")
}

/// The numbers from `low` on, up to `high`, whatever their signs are.
fn magnitudes(low: &Bound, high: Option<&Bound>) -> String {
    let any = fraction_any();
    let mut parts = Vec::new();
    match high {
        Some(high) if high.whole == low.whole => {
            parts.push(format!("{}(?:{})", whole(&low.whole), fractions(low, high)));
        }
        _ => {
            parts.push(format!("{}(?:{})", whole(&low.whole), at_least(&low.fraction, low.without)));
            parts.extend(
                high.map(|high| format!("{}(?:{})", whole(&high.whole), at_most(&high.fraction, high.without))),
            );
            parts.extend(above(&low.whole, high.map(|high| &*high.whole)).map(|between| format!("(?:{between}){any}")));
        }
    }
    parts.join("|")
}

fn whole(digits: &str) -> &str {
    if digits.is_empty() { "0" } else { digits }
}

fn fraction_any() -> String {
    format!(r"(?:\.[0-9]{{1,{FRACTION}}})?")
}

/// Whole numbers above one and below another.
fn above(low: &str, high: Option<&str>) -> Option<String> {
    let low_digits = low.len();
    let mut parts = Vec::new();
    let most = high.map_or(low_digits.max(WHOLE), str::len);
    for digits in low_digits.max(1)..=most {
        let least = if digits == low_digits { low.to_owned() } else { String::new() };
        let greatest = high.filter(|high| high.len() == digits).unwrap_or("");
        let between = between(&least, greatest, digits);
        parts.extend((!between.is_empty()).then_some(between));
    }
    (!parts.is_empty()).then(|| parts.join("|"))
}

/// Numbers of so many digits strictly between two, which are empty where there is no bound.
fn between(low: &str, high: &str, digits: usize) -> String {
    let digit = |text: &str, at: usize| text.as_bytes()[at] - b'0';
    let mut parts = Vec::new();
    let tail = |left: usize| if left == 0 { String::new() } else { format!("[0-9]{{{left}}}") };
    let mut push = |prefix: &str, from: u8, to: u8, left: usize| {
        if from <= to && to <= 9 {
            parts.push(format!("{prefix}[{from}-{to}]{}", tail(left)));
        }
    };
    let first = |at: usize| u8::from(at == 0);
    match (low.is_empty(), high.is_empty()) {
        (true, true) => push("", 1, 9, digits - 1),
        (false, true) => (0..digits).for_each(|at| push(&low[..at], digit(low, at) + 1, 9, digits - at - 1)),
        (true, false) => (0..digits).for_each(|at| {
            if digit(high, at) > first(at) {
                push(&high[..at], first(at), digit(high, at) - 1, digits - at - 1);
            }
        }),
        (false, false) => {
            let Some(fork) = (0..digits).find(|&at| digit(low, at) != digit(high, at)) else { return String::new() };
            if digit(low, fork) > digit(high, fork) {
                return String::new();
            }
            push(&low[..fork], digit(low, fork) + 1, digit(high, fork) - 1, digits - fork - 1);
            for at in fork + 1..digits {
                push(&low[..at], digit(low, at) + 1, 9, digits - at - 1);
                if digit(high, at) > 0 {
                    push(&high[..at], 0, digit(high, at) - 1, digits - at - 1);
                }
            }
        }
    }
    parts.join("|")
}

/// The point and a fraction that is at least this one, or above it.
fn at_least(fraction: &str, without: bool) -> String {
    if fraction.is_empty() {
        return if without { format!(r"\.(?:{})", nonzero()) } else { fraction_any() };
    }
    format!(r"\.(?:{})", digits_from(fraction, without).join("|"))
}

fn at_most(fraction: &str, without: bool) -> String {
    if fraction.is_empty() {
        // Nothing below the whole number itself has it before the point.
        return if without { "[^\\s\\S]".to_owned() } else { format!(r"(?:\.0{{1,{FRACTION}}})?") };
    }
    format!(r"(?:\.(?:{}))?", digits_to(fraction, without).join("|"))
}

/// Fractions between two bounds of the same whole number.
fn fractions(low: &Bound, high: &Bound) -> String {
    if low.fraction.is_empty() && !low.without {
        return at_most(&high.fraction, high.without);
    }
    if high.fraction.is_empty() {
        // Only the whole number itself, which `low` leaves out or is above.
        return "[^\\s\\S]".to_owned();
    }
    let width = low.fraction.len().max(high.fraction.len());
    let (a, b) = (format!("{:0<width$}", low.fraction), format!("{:0<width$}", high.fraction));
    let mut parts = Vec::new();
    let rest = |used: usize| format!("[0-9]{{0,{}}}", FRACTION.saturating_sub(used));
    let inner = between(&format!("1{a}"), &format!("1{b}"), width + 1);
    // The digits before the point are the same: they were only there to be compared.
    for part in inner.split('|').filter(|part| !part.is_empty()) {
        let part = &part[1..];
        parts.push(format!("{part}{}", rest(width)));
        // The same without digits that are not needed.
        let tailless = part.rsplit_once("[0-9]{").map(|(short, _)| short);
        parts.extend(tailless.map(|short| format!("{short}{}", rest(width))));
        if let Some((mut short, class)) = tailless.unwrap_or(part).rsplit_once('[')
            && class.starts_with('0')
        {
            while !short.is_empty() {
                parts.push(short.to_owned());
                short = short.strip_suffix('0').unwrap_or_default();
            }
        }
    }
    let zeros = |used: usize| format!("0{{0,{}}}", FRACTION.saturating_sub(used));
    if !low.without {
        parts.push(format!("{}{}", low.fraction, zeros(low.fraction.len())));
    }
    if a != b {
        parts.push(format!("{a}(?:{})", nonzero()));
    }
    if !high.without {
        parts.push(format!("{}{}", high.fraction, zeros(high.fraction.len())));
    }
    format!(r"\.(?:{})", parts.join("|"))
}

/// Digits that are not all zero.
fn nonzero() -> String {
    format!("0{{0,{}}}[1-9][0-9]{{0,{}}}", FRACTION - 1, FRACTION - 1)
}

/// Digits that are at least these.
fn digits_from(fraction: &str, without: bool) -> Vec<String> {
    let mut parts = Vec::new();
    let rest = |used: usize| format!("[0-9]{{0,{}}}", FRACTION.saturating_sub(used));
    for (at, digit) in fraction.bytes().enumerate() {
        if digit < b'9' {
            parts.push(format!("{}[{}-9]{}", &fraction[..at], char::from(digit + 1), rest(at + 1)));
        }
    }
    parts.push(if without {
        format!("{fraction}{}", nonzero())
    } else {
        format!("{fraction}{}", rest(fraction.len()))
    });
    parts
}

/// Digits that are at most these.
fn digits_to(fraction: &str, without: bool) -> Vec<String> {
    let mut parts = Vec::new();
    let rest = |used: usize| format!("[0-9]{{0,{}}}", FRACTION.saturating_sub(used));
    for (at, digit) in fraction.bytes().enumerate() {
        if digit > b'0' {
            parts.push(format!("{}[0-{}]{}", &fraction[..at], char::from(digit - 1), rest(at + 1)));
        }
        // A shorter one is below it.
        if at > 0 {
            parts.push(fraction[..at].to_owned());
        }
    }
    if !without {
        parts.push(format!("{fraction}0{{0,{}}}", FRACTION.saturating_sub(fraction.len())));
    }
    parts
}
