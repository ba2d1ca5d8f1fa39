//! References by URI: resolution against the base URI (RFC 3986, section 5).

/// A URI without its fragment, and the fragment.
pub(super) fn split(uri: &str) -> (&str, &str) {
    uri.split_once('#').unwrap_or((uri, ""))
}

fn scheme(uri: &str) -> Option<&str> {
    let (scheme, _) = uri.split_once(':')?;
    let mut chars = scheme.chars();
    let is_scheme = chars.next().is_some_and(|first| first.is_ascii_alphabetic())
        && chars.all(|char| char.is_ascii_alphanumeric() || "+-.".contains(char));
    is_scheme.then_some(scheme)
}

/// A reference in full; without a base it stays as it is.
pub(super) fn resolved(base: &str, to: &str) -> String {
    let base = split(base).0;
    if scheme(to).is_some() {
        return to.to_owned();
    }
    if to.is_empty() || to.starts_with('#') {
        return format!("{base}{to}");
    }
    let Some(scheme) = scheme(base) else { return joined("", base, to) };
    let rest = &base[scheme.len() + 1..];
    let Some(hierarchy) = rest.strip_prefix("//") else { return joined(&format!("{scheme}:"), rest, to) };
    if let Some(host) = to.strip_prefix("//") {
        return format!("{scheme}://{host}");
    }
    let (host, path) = hierarchy.split_at(hierarchy.find(['/', '?']).unwrap_or(hierarchy.len()));
    joined(&format!("{scheme}://{host}"), path, to)
}

fn joined(before: &str, base: &str, to: &str) -> String {
    let (to, fragment) = to.split_at(to.find('#').unwrap_or(to.len()));
    let (path, query) = to.split_at(to.find('?').unwrap_or(to.len()));
    let base = &base[..base.find('?').unwrap_or(base.len())];
    let whole = if path.starts_with('/') {
        path.to_owned()
    } else if path.is_empty() {
        base.to_owned()
    } else {
        let folder = &base[..base.rfind('/').map_or(0, |at| at + 1)];
        let root = if folder.is_empty() && before.contains("//") { "/" } else { "" };
        format!("{root}{folder}{path}")
    };
    format!("{before}{}{query}{fragment}", without_dots(&whole))
}

fn without_dots(path: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    let parts: Vec<&str> = path.split('/').collect();
    for (nth, part) in parts.iter().enumerate() {
        let is_last = nth + 1 == parts.len();
        match *part {
            "." | ".." => {
                if *part == ".." && kept.len() > 1 {
                    kept.pop();
                }
                if is_last {
                    kept.push("");
                }
            }
            part => kept.push(part),
        }
    }
    kept.join("/")
}

/// Text with `%41` as `A`.
pub(super) fn decoded(text: &str) -> String {
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let [first, after @ ..] = rest {
        let hex = |byte: u8| char::from(byte).to_digit(16);
        if let (b'%', [high, low, behind @ ..]) = (first, after)
            && let (Some(high), Some(low)) = (hex(*high), hex(*low))
        {
            bytes.push((high * 16 + low) as u8);
            rest = behind;
        } else {
            bytes.push(*first);
            rest = after;
        }
    }
    String::from_utf8(bytes).unwrap_or_else(|_| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::resolved;

    #[test]
    fn references_of_rfc_3986() {
        for (base, to, whole) in [
            ("http://a/b/c/d?q", "g", "http://a/b/c/g"),
            ("http://a/b/c/d?q", "../g#s", "http://a/b/g#s"),
            ("http://a/b/c/d?q", "/g", "http://a/g"),
            ("http://a/b/c/d?q", "//g", "http://g"),
            ("http://a/b/c/d?q", "#s", "http://a/b/c/d?q#s"),
            ("http://a", "x.json", "http://a/x.json"),
            ("", "item.json#/a", "item.json#/a"),
            ("urn:uuid:1", "#/a", "urn:uuid:1#/a"),
            ("urn:uuid:1", "urn:x", "urn:x"),
        ] {
            assert_eq!(resolved(base, to), whole, "{to} in {base}");
        }
    }
}
