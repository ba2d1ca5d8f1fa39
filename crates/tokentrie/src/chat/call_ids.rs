//! Ids of calls, each once in a conversation.

use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use trie_core::{Mode, SamplerOptions, TokenId};

/// Maker of the ids of a reply's calls. An id that the model writes is kept unless the conversation has it already.
///
/// The ids made for a conversation are the same each time, unless its tokens are sampled without a seed. Those of
/// another conversation, or of the next turn, differ by chance: clients that drop old messages meet no id twice.
#[derive(Debug, Clone, Default)]
pub(super) struct CallIds {
    taken: HashSet<String>,
    /// Hash of what the ids are made from.
    source: Sha256,
    made: u32,
    /// The ids of the reply, by the number of the call.
    given: Vec<String>,
}

impl CallIds {
    /// Characters of an id, and their number: what the strictest of the templates takes.
    const CHARACTERS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    const LENGTH: usize = 9;

    /// Returns the maker for the next turn of a conversation.
    pub(super) fn new(messages: &[Value], prompt: &[TokenId]) -> Self {
        let calls = messages.iter().filter_map(|message| message.get("tool_calls")?.as_array()).flatten();
        let taken = calls.filter_map(|call| Some(call.get("id")?.as_str()?.to_owned())).collect();
        let mut source = Sha256::new();
        for token in prompt {
            source.update(token.get().to_le_bytes());
        }
        Self { taken, source, ..Self::default() }
    }

    /// Returns the same for a reply with this sampling.
    pub(super) fn with_sampling(mut self, sampling: &SamplerOptions) -> Self {
        match (sampling.mode, sampling.seed) {
            (Mode::Greedy, _) => {}
            (Mode::Sampled, Some(seed)) => self.source.update(seed.to_le_bytes()),
            (Mode::Sampled, None) => self.source.update(RandomState::new().hash_one(0).to_le_bytes()),
        }
        self
    }

    /// Returns the id of the call with this number in the reply, for which the model wrote `written`, or nothing yet.
    pub(super) fn id(&mut self, index: usize, written: &str) -> String {
        if let Some(given) = self.given.get(index) {
            return given.clone();
        }
        let id = self.unique(written);
        self.taken.insert(id.clone());
        self.given.push(id.clone());
        id
    }

    fn unique(&mut self, written: &str) -> String {
        let is_new = |ids: &Self, id: &str| !id.is_empty() && !ids.taken.contains(id);
        if is_new(self, written) {
            return written.to_owned();
        }
        // An id with a number may say more, such as the name of the tool: the next free number.
        let name = written.trim_end_matches(|character: char| character.is_ascii_digit());
        if let Ok(number) = written[name.len()..].parse::<u32>()
            && !name.ends_with(char::is_alphanumeric)
        {
            let mut next = (u64::from(number) + 1..).map(|number| format!("{name}{number}"));
            return next.find(|id| is_new(self, id)).unwrap_or_default();
        }
        loop {
            let id = self.made_id();
            if is_new(self, &id) {
                return id;
            }
        }
    }

    fn made_id(&mut self) -> String {
        let hash = self.source.clone().chain_update(self.made.to_le_bytes()).finalize();
        self.made += 1;
        // 16 bits a character: none is more probable than another by more than a thousandth.
        let numbers = hash.chunks_exact(2).map(|two| usize::from(u16::from_le_bytes([two[0], two[1]])));
        numbers.take(Self::LENGTH).map(|number| char::from(Self::CHARACTERS[number % Self::CHARACTERS.len()])).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn prompt(text: &str) -> Vec<TokenId> {
        text.bytes().map(|byte| TokenId::new(byte.into()).unwrap()).collect()
    }

    fn ids(messages: &[Value], text: &str, seed: Option<u32>, written: &[&str]) -> Vec<String> {
        let sampling = SamplerOptions { mode: Mode::Sampled, seed, ..SamplerOptions::default() };
        let mut ids = CallIds::new(messages, &prompt(text)).with_sampling(&sampling);
        let given: Vec<String> = written.iter().enumerate().map(|(index, written)| ids.id(index, written)).collect();
        for (index, id) in given.iter().enumerate() {
            assert_eq!(*id, ids.id(index, "another"), "a call has one id");
        }
        given
    }

    #[test]
    fn each_is_made_once_and_the_same_with_a_seed() {
        let made = ids(&[], "a", Some(1), &[""; 200]);
        assert!(made.iter().all(|id| id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric())));
        assert_eq!(made.iter().collect::<HashSet<_>>().len(), 200);
        assert_eq!(made, ids(&[], "a", Some(1), &[""; 200]));
        for (text, seed) in [("b", Some(1)), ("a", Some(2)), ("a", None)] {
            assert_ne!(made[0], ids(&[], text, seed, &[""])[0]);
        }
        assert_ne!(ids(&[], "a", None, &[""]), ids(&[], "a", None, &[""]));
    }

    #[test]
    fn what_the_model_wrote_is_kept_unless_it_is_there_already() {
        let said = [json!({"role": "assistant", "tool_calls": [{"id": "functions.f:0"}, {"id": null}, {"id": "abc"}]})];
        let found =
            ids(&said, "a", Some(1), &["functions.f:0", "functions.f:2", "functions.f:1", "abc", "abc", "x1", "x1"]);
        assert_eq!(found[..3], ["functions.f:1", "functions.f:2", "functions.f:3"]);
        assert_eq!((found[3].len(), found[4].len(), found[5].as_str(), found[6].len()), (9, 9, "x1", 9));
        assert_eq!(found.iter().collect::<HashSet<_>>().len(), 7);
        // Made ids are passed over, too.
        let first = ids(&[], "a", Some(1), &[""]).remove(0);
        let said = [json!({"role": "assistant", "tool_calls": [{"id": first.clone()}]})];
        assert_ne!(ids(&said, "a", Some(1), &[""])[0], first);
    }
}
