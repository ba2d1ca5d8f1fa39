//! Free text on its way to its stop.

/// Text that a model writes until a stop: its bytes, and the number of tokens that can no longer be taken back.
#[derive(Debug, Clone, Default)]
pub(super) struct FreeText {
    pub(super) bytes: Vec<u8>,
    /// End of each token.
    ends: Vec<usize>,
    /// Number of bytes at the beginning that form whole characters.
    whole: usize,
    /// Start of the stop.
    stop: Option<usize>,
    /// Number of tokens that can no longer become part of the stop or of an incomplete character.
    pub(super) certain: usize,
}

impl FreeText {
    /// Takes the bytes of a token and looks for the stops, none of which is empty. The stop that is written first
    /// counts; of stops that end together, the longest. `O(bytes of token and stop)` for each.
    pub(super) fn push(&mut self, piece: &[u8], stops: &[String]) {
        let might_begin = |length: usize, stop: usize| (length + 1).saturating_sub(stop);
        let before = self.bytes.len();
        self.bytes.extend_from_slice(piece);
        self.ends.push(self.bytes.len());
        self.whole += match std::str::from_utf8(&self.bytes[self.whole..]) {
            Ok(text) => text.len(),
            Err(error) => error.valid_up_to(),
        };
        let first = stops.iter().filter_map(|stop| {
            let from = might_begin(before, stop.len());
            let found = self.bytes[from..].windows(stop.len()).position(|window| window == stop.as_bytes())?;
            Some((from + found + stop.len(), from + found))
        });
        self.stop = first.min().map(|(_, begin)| begin);
        if self.stop.is_none() {
            let longest = stops.iter().map(String::len).max().unwrap_or(1);
            let settled = might_begin(self.bytes.len(), longest).min(self.whole);
            self.certain += self.ends[self.certain..].iter().take_while(|&&end| end <= settled).count();
        }
    }

    /// Returns the start of the stop, once it is written.
    pub(super) fn stop(&self) -> Option<usize> {
        self.stop
    }

    /// Returns whether the stop is written.
    pub(super) fn is_over(&self) -> bool {
        self.stop.is_some()
    }

    /// The text up to the stop, or all of it, without an incomplete character at the end.
    pub(super) fn value(&self) -> String {
        let end = self.stop.unwrap_or(self.whole).min(self.whole);
        String::from_utf8_lossy(&self.bytes[..end]).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_certain_once_no_stop_can_begin_in_them() {
        let mut text = FreeText::default();
        let pushed: Vec<_> = [&b"ab"[..], b"\n", b"c\xc3", b"\xa4", b"d\n", b"\ne"]
            .map(|piece| {
                text.push(piece, &["\n\n".to_owned()]);
                (text.stop, text.certain)
            })
            .into();
        assert_eq!(pushed, [(None, 0), (None, 1), (None, 2), (None, 3), (None, 4), (Some(7), 4)]);
        assert_eq!(text.value(), "ab\ncäd");
    }

    #[test]
    fn a_character_that_is_cut_off_is_left_out() {
        let mut text = FreeText::default();
        for piece in [&b"a"[..], b"\xe2\x82"] {
            text.push(piece, &["|".to_owned()]);
        }
        assert_eq!(text.certain, 1);
        assert_eq!(text.value(), "a");
    }

    /// Against every stop at every place.
    #[test]
    fn of_several_stops_the_first_that_is_written_counts() {
        let all = ["b", "ab", "ba", "aab", "bbb", "cc"];
        for chosen in 1..1u32 << all.len() {
            let stops: Vec<String> =
                (0..all.len()).filter(|bit| chosen >> bit & 1 == 1).map(|bit| all[bit].to_owned()).collect();
            for number in 0..3usize.pow(6) {
                let text: String = (0..6).map(|at| ['a', 'b', 'c'][number / 3usize.pow(at) % 3]).collect();
                let ended = |length: &usize| {
                    stops.iter().filter(|stop| text[..*length].ends_with(*stop)).max_by_key(|stop| stop.len())
                };
                let first = (1..=6).find_map(|length| Some(length - ended(&length)?.len()));
                for size in [1, 2, 4] {
                    let mut read = FreeText::default();
                    for piece in text.as_bytes().chunks(size) {
                        read.push(piece, &stops);
                        if read.is_over() {
                            break;
                        }
                        let settled = read.ends[..read.certain].last().copied().unwrap_or(0);
                        assert!(first.is_none_or(|first| settled <= first), "{text} {stops:?} by {size}");
                    }
                    assert_eq!(read.stop, first, "{text} {stops:?} by {size}");
                }
            }
        }
    }
}
