//! Meta-schemas of JSON Schema, for each draft: the targets of references to `http://json-schema.org/…`.

use crate::json::Json;
use std::sync::OnceLock;

/// From <https://json-schema.org>, under the BSD 3-Clause licence or the Academic Free License 3.0, at your choice: the
/// meta-schema of each draft and its vocabularies, without their comments.
const DRAFTS: [&str; 5] = [
    include_str!("meta/draft-04.json"),
    include_str!("meta/draft-06.json"),
    include_str!("meta/draft-07.json"),
    include_str!("meta/draft-2019-09.json"),
    include_str!("meta/draft-2020-12.json"),
];

/// Returns the document that has a URI without a fragment, if it is one of them.
pub(super) fn named(uri: &str) -> Option<&'static Json> {
    static READ: OnceLock<Vec<(String, Json)>> = OnceLock::new();
    if !uri.contains("://json-schema.org/draft") {
        return None;
    }
    let read = READ.get_or_init(|| {
        let drafts = DRAFTS.iter().filter_map(|draft| Json::read(draft));
        let all = drafts.flat_map(|draft| draft.as_array().unwrap_or(&[]).to_vec());
        all.filter_map(|schema| {
            let id = schema.get("$id").or_else(|| schema.get("id")).and_then(Json::as_str)?;
            Some((super::uri::split(id).0.to_owned(), schema.clone()))
        })
        .collect()
    });
    read.iter().find(|(id, _)| id == uri).map(|(_, schema)| schema)
}

#[cfg(test)]
mod tests {
    use super::named;

    #[test]
    fn all_drafts_are_there() {
        for uri in ["draft-04/schema", "draft-06/schema", "draft-07/schema"] {
            assert!(named(&format!("http://json-schema.org/{uri}")).is_some(), "{uri}");
        }
        for uri in ["2019-09/schema", "2019-09/meta/core", "2020-12/schema", "2020-12/meta/unevaluated"] {
            assert!(named(&format!("https://json-schema.org/draft/{uri}")).is_some(), "{uri}");
        }
        assert!(
            named("https://json-schema.org/draft/2020-12/other").is_none() && named("http://example.com").is_none()
        );
    }
}
