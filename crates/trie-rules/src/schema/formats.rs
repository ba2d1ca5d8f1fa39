//! Formats of strings, as regular expressions of whole texts.

use crate::text_set::formats::{ipv4, ipv6};

/// What becomes of a format.
pub(super) enum Known {
    /// Its texts are those of a pattern.
    Pattern(String),
    /// It cannot be held.
    Unheld,
    /// There is no such format.
    Not,
}

pub(super) fn known(format: &str) -> Known {
    match (format_pattern(format), format) {
        (Some(pattern), _) => Known::Pattern(format!("^(?:{pattern})$")),
        (None, "regex") => Known::Unheld,
        (None, _) => Known::Not,
    }
}

const ALNUM: &str = "[A-Za-z0-9]";
const HEX: &str = "[0-9A-Fa-f]";
const TIME: &str =
    r"(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,9})?(?:[Zz]|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])";
/// Years in which a 29th of February is.
const LEAP: &str = "(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:0[48]|[2468][048]|[13579][26])00)";
const YEAR: &str = "(?:[0-9]{3}[1-9]|[0-9]{2}[1-9]0|[0-9][1-9]00|[1-9]000)";
const DAY: &str = "(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)\
    |02-(?:0[1-9]|1[0-9]|2[0-8])";
const POINTER: &str = "(?:/(?:[^/~]|~[01])*)*";
/// Characters that are not ASCII, as IRIs have them.
const BEYOND: &str = r"\x{A0}-\x{D7FF}\x{F900}-\x{FDCF}\x{FDF0}-\x{FFEF}\x{10000}-\x{1FFFD}\x{20000}-\x{2FFFD}";

/// A regular expression of the texts of a format that JSON Schema names; `None` where there is none.
///
/// Dates exist, from the year 1 on, and no second is a leap second; names of hosts are in ASCII.
///
/// ```
/// use trie_rules::schema::format_pattern;
///
/// assert_eq!(format_pattern("json-pointer").as_deref(), Some("(?:/(?:[^/~]|~[01])*)*"));
/// assert_eq!(format_pattern("colour"), None);
/// ```
#[must_use]
pub fn format_pattern(format: &str) -> Option<String> {
    let word = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]{1,64}";
    Some(match format {
        "date" => date(),
        "time" => TIME.to_owned(),
        "date-time" => format!("(?:{})[Tt]{TIME}", date()),
        "duration" => {
            let last = |one: &str, two: &str, three: &str| {
                format!("[0-9]+{three}|[0-9]+{two}(?:[0-9]+{three})?|[0-9]+{one}(?:[0-9]+{two}(?:[0-9]+{three})?)?")
            };
            let time = last("H", "M", "S");
            format!("P(?:(?:{})(?:T(?:{time}))?|T(?:{time})|[0-9]+W)", last("Y", "M", "D"))
        }
        "uuid" => format!("{HEX}{{8}}(?:-{HEX}{{4}}){{3}}-{HEX}{{12}}"),
        "ipv4" => ipv4(),
        "ipv6" => ipv6(),
        "hostname" | "idn-hostname" => host(),
        "email" | "idn-email" => format!(r"{word}(?:\.{word})*@(?:{}|\[{}\])", host(), ipv4()),
        "uri" => Uri { beyond: "" }.whole(false),
        "uri-reference" => Uri { beyond: "" }.whole(true),
        "iri" => Uri { beyond: BEYOND }.whole(false),
        "iri-reference" => Uri { beyond: BEYOND }.whole(true),
        "uri-template" => {
            let name = format!(r"(?:[A-Za-z0-9_]|%{HEX}{{2}})(?:\.?(?:[A-Za-z0-9_]|%{HEX}{{2}}))*");
            let spec = format!(r"{name}(?::[1-9][0-9]{{0,3}}|\*)?");
            let plain = format!(r#"[^\x00-\x20"'%<>\\^`{{|}}\x7F-\x9F]|%{HEX}{{2}}"#);
            format!(r"(?:{plain}|\{{[+#./;?&=,!@|]?{spec}(?:,{spec})*\}})*")
        }
        "json-pointer" => POINTER.to_owned(),
        "relative-json-pointer" => format!("(?:0|[1-9][0-9]*)(?:#|{POINTER})"),
        _ => return None,
    })
}

fn date() -> String {
    format!("{YEAR}-(?:{DAY})|{LEAP}-02-29")
}

/// Names of hosts: labels of up to 63 characters, none of which has two hyphens where a coded one has them.
fn host() -> String {
    let (one, any) = (ALNUM, "[A-Za-z0-9-]");
    let middle = format!("(?:{one}{any}|-{one})");
    let label = format!("{one}(?:{one}|{any}{one}|{any}(?:{any}{one}|{middle}{any}{{0,58}}{one}))?");
    format!(r"{label}(?:\.{label})*")
}

/// URIs, and IRIs, which have more characters.
struct Uri {
    beyond: &'static str,
}

impl Uri {
    fn chars(&self, more: &str) -> String {
        format!(r"(?:[A-Za-z0-9._~!$&'()*+,;={more}{}-]|%{HEX}{{2}})", self.beyond)
    }

    /// One of them; with those that are relative.
    fn whole(&self, relative: bool) -> String {
        let (char, plain) = (self.chars(":@"), self.chars("@"));
        let (segment, user, name) = (format!("{char}*"), self.chars(":"), self.chars(""));
        let literal = format!("{}|v{HEX}+\\.[A-Za-z0-9._~!$&'()*+,;=:-]+", ipv6());
        let host = format!(r"(?:\[(?:{literal})\]|{name}*)");
        let authority = format!("(?:{user}*@)?{host}(?::[0-9]*)?");
        let path = |first: &str| {
            let rest = format!("(?:/{segment})*");
            format!("(?://{authority}{rest}|/(?:{char}+{rest})?|{first}+{rest}|)")
        };
        let end = format!("(?:\\?(?:{char}|[/?])*)?(?:#(?:{char}|[/?])*)?");
        let scheme = "[A-Za-z][A-Za-z0-9+.-]*:";
        let absolute = format!("{scheme}{}{end}", path(&char));
        if relative { format!("{absolute}|{}{end}", path(&plain)) } else { absolute }
    }
}
