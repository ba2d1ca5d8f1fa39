//! Formats of strings that JSON Schema names, as sets of texts.

use super::TextSet;
use crate::automaton::{AutomatonError, AutomatonLimits};
use std::sync::{Arc, OnceLock};

/// The texts of a format, and the texts that certainly do not have the format.
///
/// Formats follow their RFCs, with exceptions: texts that an automaton cannot check, and texts that common readers
/// refuse. Such a text is in neither set, so that neither `format` nor its negation by `not` allows a wrong text:
///
/// | format | enforced | in neither set |
/// | --- | --- | --- |
/// | `date`, `date-time` | years from 1 on | the year 0 |
/// | `time`, `date-time` | no leap second | `:60` |
/// | `hostname` | labels without `--` in the third place | those with it: `xn--…` |
/// | `idn-hostname` | labels of up to 11 characters of a few scripts beside ASCII | other letters |
/// | `email`, `idn-email` | hosts as above | other hosts |
/// | `regex` | groups up to three deep, no back references | whatever else |
///
/// ```
/// use trie_rules::TextFormat;
///
/// let date = TextFormat::find_by_name("date")?.unwrap();
/// assert!(date.texts().is_match("2024-02-29") && date.complement().is_match("2023-02-29"));
/// let host = TextFormat::find_by_name("hostname")?.unwrap();
/// assert_eq!(host.max_chars(), Some(253));
/// assert!(TextFormat::find_by_name("colour")?.is_none());
/// # Ok::<(), trie_rules::AutomatonError>(())
/// ```
#[derive(Debug, Clone)]
pub struct TextFormat(Arc<Format>);

#[derive(Debug)]
struct Format {
    texts: TextSet,
    max_chars: Option<u32>,
    others: TextSet,
}

impl TextFormat {
    /// Returns the format with this name; `None` if JSON Schema has no such format. Each format is built once.
    ///
    /// # Errors
    /// The work limit of this thread is used up.
    pub fn find_by_name(name: &str) -> Result<Option<Self>, AutomatonError> {
        static KNOWN: [OnceLock<TextFormat>; NAMES.len()] = [const { OnceLock::new() }; NAMES.len()];
        let Some(at) = NAMES.iter().position(|known| *known == name) else { return Ok(None) };
        if let Some(known) = KNOWN[at].get() {
            return Ok(Some(known.clone()));
        }
        let made = Self(Arc::new(build(name)?));
        Ok(Some(KNOWN[at].get_or_init(|| made).clone()))
    }

    /// Returns the names of all formats.
    pub fn names() -> &'static [&'static str] {
        &NAMES
    }

    /// Returns the texts of the format.
    pub fn texts(&self) -> &TextSet {
        &self.0.texts
    }

    /// Returns the maximum number of characters of these texts, if there is one.
    pub fn max_chars(&self) -> Option<u32> {
        self.0.max_chars
    }

    /// Returns the texts that do not have the format, regardless of their length.
    pub fn complement(&self) -> &TextSet {
        &self.0.others
    }
}

const NAMES: [&str; 19] = [
    "date",
    "time",
    "date-time",
    "duration",
    "email",
    "idn-email",
    "hostname",
    "idn-hostname",
    "ipv4",
    "ipv6",
    "uri",
    "uri-reference",
    "iri",
    "iri-reference",
    "uri-template",
    "uuid",
    "json-pointer",
    "relative-json-pointer",
    "regex",
];

const ALNUM: &str = "[A-Za-z0-9]";
const HEX: &str = "[0-9A-Fa-f]";
const BYTE: &str = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])";
const HOUR: &str = "(?:[01][0-9]|2[0-3])";
/// Texts that do not begin with the year 0.
const SOME_YEAR: &str = "(?:[^0]|0[^0]|00[^0]|000[^0])[^]*";
/// Years in which a 29th of February is, the year 0 among them.
const LEAP: &str = "(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)";
const DAY: &str = "(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)\
    |02-(?:0[1-9]|1[0-9]|2[0-8])";
const POINTER: &str = "(?:/(?:[^/~]|~[01])*)*";
/// Characters that are not ASCII, as IRIs have them.
const BEYOND: &str = "\\u{A0}-\\u{D7FF}\\u{F900}-\\u{FDCF}\\u{FDF0}-\\u{FFEF}\\u{10000}-\\u{1FFFD}\\u{20000}-\\u{2FFFD}\
    \\u{30000}-\\u{3FFFD}\\u{40000}-\\u{4FFFD}\\u{50000}-\\u{5FFFD}\\u{60000}-\\u{6FFFD}\\u{70000}-\\u{7FFFD}\
    \\u{80000}-\\u{8FFFD}\\u{90000}-\\u{9FFFD}\\u{A0000}-\\u{AFFFD}\\u{B0000}-\\u{BFFFD}\\u{C0000}-\\u{CFFFD}\
    \\u{D0000}-\\u{DFFFD}\\u{E1000}-\\u{EFFFD}";
/// And those that their queries have beside.
const PRIVATE: &str = "\\u{E000}-\\u{F8FF}\\u{F0000}-\\u{FFFFD}\\u{100000}-\\u{10FFFD}";
/// Letters of names of hosts beside ASCII: those of which each is allowed, wherever it stands and whatever its
/// neighbours are.
const LETTERS: &str = "\\u{DF}-\\u{F6}\\u{F8}-\\u{FF}\\u{3AC}-\\u{3CE}\\u{430}-\\u{45F}\\u{4E00}-\\u{9FA5}\
    \\u{3041}-\\u{3096}\\u{30A1}-\\u{30FA}\\u{30FC}\\u{AC00}-\\u{D7A3}";

fn build(name: &str) -> Result<Format, AutomatonError> {
    let mut max_chars = None;
    let (mut narrower, mut wider) = (None, None);
    let pattern = match name {
        "date" => {
            narrower = Some(SOME_YEAR);
            date()
        }
        "time" => {
            wider = Some(time(true));
            time(false)
        }
        "date-time" => {
            narrower = Some(SOME_YEAR);
            wider = Some(format!("(?:{})[Tt]{}", date(), time(true)));
            format!("(?:{})[Tt]{}", date(), time(false))
        }
        "duration" => duration(),
        "uuid" => format!("{HEX}{{8}}(?:-{HEX}{{4}}){{3}}-{HEX}{{12}}"),
        "ipv4" => ipv4(),
        "ipv6" => ipv6(),
        "hostname" => {
            max_chars = Some(253);
            wider = Some(host(Host::Wide));
            host(Host::Plain)
        }
        "idn-hostname" => {
            // What is not ASCII counts for more there.
            max_chars = Some(63);
            wider = Some(host(Host::AnyLetters));
            host(Host::Letters)
        }
        "email" => {
            max_chars = Some(254);
            narrower = Some(SHORT_LOCAL);
            wider = Some(email("", Host::Wide));
            email("", Host::Plain)
        }
        "idn-email" => {
            max_chars = Some(127);
            narrower = Some(SHORT_LOCAL);
            wider = Some(email("\\u{80}-\\u{10FFFF}", Host::AnyLetters));
            email("\\u{80}-\\u{10FFFF}", Host::Letters)
        }
        "uri" => Uri { beyond: "", private: "" }.pattern(false),
        "uri-reference" => Uri { beyond: "", private: "" }.pattern(true),
        "iri" => Uri { beyond: BEYOND, private: PRIVATE }.pattern(false),
        "iri-reference" => Uri { beyond: BEYOND, private: PRIVATE }.pattern(true),
        "uri-template" => uri_template(),
        "json-pointer" => POINTER.to_owned(),
        "relative-json-pointer" => format!("(?:0|[1-9][0-9]*)(?:#|{POINTER})"),
        _ => {
            // Nothing is told of what is none.
            wider = Some("[^]*".to_owned());
            regex()
        }
    };
    let all = whole_matches(&pattern)?;
    let texts = narrower.map_or_else(|| Ok(all.clone()), |narrower| all.and(&whole_matches(narrower)?))?;
    let others = wider.map_or_else(|| Ok(all), |wider| whole_matches(&wider))?.complement();
    Ok(Format { texts, max_chars, others })
}

/// The texts that match from the first character to the last.
fn whole_matches(pattern: &str) -> Result<TextSet, AutomatonError> {
    match super::syntax::parse(&format!("^(?:{pattern})$")) {
        Ok(node) => TextSet::from_node(&node, AutomatonLimits::default()),
        Err(problem) => Err(AutomatonError::Unsupported { what: problem.text }),
    }
}

fn date() -> String {
    format!("[0-9]{{4}}-(?:{DAY})|{LEAP}-02-29")
}

fn time(has_leap_seconds: bool) -> String {
    let second = if has_leap_seconds { "(?:[0-5][0-9]|60)" } else { "[0-5][0-9]" };
    format!("{HOUR}:[0-5][0-9]:{second}(?:\\.[0-9]+)?(?:[Zz]|[+-]{HOUR}:[0-5][0-9])")
}

fn duration() -> String {
    let last = |one: &str, two: &str, three: &str| {
        format!("[0-9]+{three}|[0-9]+{two}(?:[0-9]+{three})?|[0-9]+{one}(?:[0-9]+{two}(?:[0-9]+{three})?)?")
    };
    let time = last("H", "M", "S");
    format!("P(?:(?:{})(?:T(?:{time}))?|T(?:{time})|[0-9]+W)", last("Y", "M", "D"))
}

/// Labels that are allowed in a host name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Host {
    /// ASCII labels, none of them encoded.
    Plain,
    /// All labels of ASCII.
    Wide,
    /// With letters that are surely allowed.
    Letters,
    /// With whatever is not ASCII.
    AnyLetters,
}

/// Names of hosts: labels of up to 63 characters.
fn host(which: Host) -> String {
    let (one, any) = (ALNUM, "[A-Za-z0-9-]");
    let middle = format!("(?:{one}{any}|-{one})");
    // No two hyphens in the third and the fourth place.
    let plain = format!("{one}(?:{one}|{any}{one}|{any}(?:{any}{one}|{middle}{any}{{0,58}}{one}))?");
    let wide = format!("{one}(?:{any}{{0,61}}{one})?");
    let label = match which {
        Host::Plain => plain,
        Host::Wide => wide,
        Host::Letters => {
            // Coded, a letter takes up to five characters of 59.
            let (one, any) = (format!("[a-z0-9{LETTERS}]"), format!("[a-z0-9{LETTERS}-]"));
            let middle = format!("(?:{one}{any}|-{one})");
            format!("(?:{plain}|{one}(?:{one}|{any}{one}|{any}(?:{any}{one}|{middle}{any}{{0,6}}{one}))?)")
        }
        Host::AnyLetters => "[A-Za-z0-9\\u{80}-\\u{10FFFF}](?:[A-Za-z0-9\\u{80}-\\u{10FFFF}-]*\
            [A-Za-z0-9\\u{80}-\\u{10FFFF}])?"
            .to_owned(),
    };
    match which {
        Host::Plain | Host::Wide => format!("{label}(?:\\.{label})*"),
        // Ideographic and wide full stops separate, too.
        Host::Letters => format!("{label}(?:[.\\u{{3002}}\\u{{FF0E}}\\u{{FF61}}]{label})*"),
        Host::AnyLetters => format!("{label}(?:\\.{label})*\\.?"),
    }
}

/// Up to 64 characters before the `@`.
const SHORT_LOCAL: &str = "(?:\"(?:[^\"\\\\]|\\\\.){0,62}\"|[^@\"]{1,64})@[^]*";

fn email(beyond: &str, hosts: Host) -> String {
    let word = format!("[A-Za-z0-9!#$%&'*+/=?^_`{{|}}~{beyond}-]+");
    let quoted = format!("\"(?:[ !#-\\[\\]-~{beyond}]|\\\\[ -~])*\"");
    let address = format!("\\[(?:{}|[Ii][Pp][Vv]6:(?:{}))\\]", ipv4(), ipv6());
    format!("(?:{word}(?:\\.{word})*|{quoted})@(?:{}|{address})", host(hosts))
}

pub(crate) fn ipv4() -> String {
    format!("(?:{BYTE}\\.){{3}}{BYTE}")
}

pub(crate) fn ipv6() -> String {
    let ipv4 = ipv4();
    let part = format!("{HEX}{{1,4}}");
    let parts = |count: usize| match count {
        0 => String::new(),
        1 => part.clone(),
        count => format!("(?:{part}:){{{}}}{part}", count - 1),
    };
    let mut either = vec![parts(8), format!("(?:{part}:){{6}}{ipv4}")];
    for before in 0..=7 {
        let left = parts(before);
        if before < 7 {
            let more = 6 - before;
            either.push(format!("{left}::(?:{part}(?::{part}){{0,{more}}})?"));
        } else {
            either.push(format!("{left}::"));
        }
        if before <= 5 {
            either.push(format!("{left}::(?:{part}:){{0,{}}}{ipv4}", 5 - before));
        }
    }
    either.join("|")
}

/// URIs, and IRIs, which have more characters.
struct Uri {
    beyond: &'static str,
    private: &'static str,
}

impl Uri {
    fn chars(&self, more: &str) -> String {
        format!("(?:[A-Za-z0-9._~!$&'()*+,;={more}{}-]|%{HEX}{{2}})", self.beyond)
    }

    /// One of them; with those that are relative.
    fn pattern(&self, relative: bool) -> String {
        let (char, plain) = (self.chars(":@"), self.chars("@"));
        let (segment, user, name) = (format!("{char}*"), self.chars(":"), self.chars(""));
        let literal = format!("{}|[Vv]{HEX}+\\.[A-Za-z0-9._~!$&'()*+,;=:-]+", ipv6());
        let host = format!("(?:\\[(?:{literal})\\]|{name}*)");
        let authority = format!("(?:{user}*@)?{host}(?::[0-9]*)?");
        let path = |first: &str| {
            let rest = format!("(?:/{segment})*");
            format!("(?://{authority}{rest}|/(?:{char}+{rest})?|{first}+{rest}|)")
        };
        let query = self.chars(&format!(":@/?{}", self.private));
        let end = format!("(?:\\?{query}*)?(?:#(?:{char}|[/?])*)?");
        let scheme = "[A-Za-z][A-Za-z0-9+.-]*:";
        let absolute = format!("{scheme}{}{end}", path(&char));
        if relative { format!("{absolute}|{}{end}", path(&plain)) } else { absolute }
    }
}

fn uri_template() -> String {
    let name = format!("(?:[A-Za-z0-9_]|%{HEX}{{2}})(?:\\.?(?:[A-Za-z0-9_]|%{HEX}{{2}}))*");
    let spec = format!("{name}(?::[1-9][0-9]{{0,3}}|\\*)?");
    let plain = format!("[!#$&(-;=?-\\[\\]_a-z~{BEYOND}{PRIVATE}]|%{HEX}{{2}}");
    format!("(?:{plain}|\\{{[+#./;?&=,!@|]?{spec}(?:,{spec})*\\}})*")
}

/// Patterns of ECMA-262 without what automata do not count: deep groups, counts and ranges in order.
fn regex() -> String {
    let escape = format!(
        "\\\\(?:[dDwWsSfnrtv^$\\\\.*+?()\\[\\]{{}}|/]|c[A-Za-z]|x{HEX}{{2}}\
         |u(?:[0-9A-CEFa-cef]{HEX}{{3}}|[Dd][0-7]{HEX}{{2}}))"
    );
    let in_class = format!("(?:[^\\\\\\]^-]|{escape})");
    let class = format!("\\[\\^?(?:{in_class}|a-z|A-Z|0-9|a-f|A-F|0-7|1-9)*-?\\]");
    let plain = "[^^$\\\\.*+?()\\[\\]{}|]";
    let counted = "\\{(?:[0-9]{1,3},?|0,[0-9]{1,3}|1,[1-9][0-9]{0,2})\\}";
    let quantifier = format!("(?:(?:[*+?]|{counted})\\??)?");
    let single = format!("(?:\\.|{plain}|{escape}|{class}){quantifier}|[$^|]|\\\\[bB]");
    let flat = format!("(?:{single})*");
    (0..3).fold(flat.clone(), |inner, _| {
        format!("(?:{single}|\\((?:\\?:)?{inner}\\){quantifier}|\\(\\?<?[=!]{flat}\\))*")
    })
}
