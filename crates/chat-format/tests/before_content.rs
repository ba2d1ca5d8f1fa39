//! What may stand before content that is held to something: it always leads to content, soon, and the parser agrees.

use crate::support::random::Random;
use crate::support::{small_templates, templates};
use chat_format::{ChatFormat, ChatTemplate, ControlTokens, ParserOptions, ToolChoice, Tools};
use proptest::test_runner::Config;
use std::sync::Arc;
use trie_core::{Constraint, Ending, Scratch, TokenId, Tokens};
use trie_rules::{Spelling, TokenBytes};

/// One token a byte; the byte of control tokens has none.
fn bytes() -> Spelling {
    let pieces: Vec<Vec<u8>> =
        (0..=255).map(|byte| if byte == ControlTokens::BYTE { vec![] } else { vec![byte] }).collect();
    let tokens = pieces.iter().zip(0..).map(|(piece, id)| (&piece[..], TokenId::new(id).unwrap()));
    Arc::new(TokenBytes::new(256, tokens).unwrap()).into()
}

#[test]
fn every_walk_reaches_content_that_is_read_as_content() {
    let spelling = bytes();
    let id = |byte: u8| TokenId::new(byte.into()).unwrap();
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    let walks = (Config::default().cases / 12).clamp(2, 20); // each makes a parser anew
    for (name, text) in small_templates().into_iter().chain(templates().unwrap_or_default()) {
        let Ok(format) = ChatTemplate::new(text, "<s>", "</s>").and_then(ChatFormat::new) else { continue };
        let found = format.analysis();
        let closing: Vec<TokenId> = found.dialect.reasoning.end.bytes().map(id).collect();
        for prompt in [&found.prompt_thinking, &found.prompt_not_thinking] {
            let made = match format.before_content(Some(prompt), &spelling, &ControlTokens::default()) {
                Ok(Some(made)) => made,
                // Content begins at once.
                Ok(None) => continue,
                Err(error) => panic!("{name}: {error}"),
            };
            let made = made.with_budget(3, closing.clone());
            for _ in 0..walks {
                let (mut at, mut written, mut scratch) = (made.start(), Vec::new(), Scratch::default());
                loop {
                    assert!(written.len() < 2000, "{name}: no end of {:?}", String::from_utf8_lossy(&written));
                    let next = made.next(&at, &mut scratch);
                    if next.ending != Ending::No && random.below(3) == 0 {
                        break;
                    }
                    let legal: Vec<u8> = match next.tokens {
                        Tokens::Except(but) => (b'a'..=b'z').filter(|&byte| but.contains(id(byte))).collect(),
                        few => few.iter().map(|token| token.get() as u8).collect(),
                    };
                    if legal.is_empty() {
                        assert_ne!(
                            next.ending,
                            Ending::No,
                            "{name}: a dead end after {:?}",
                            String::from_utf8_lossy(&written)
                        );
                        break;
                    }
                    let byte = *random.pick(&legal);
                    assert!(made.advance(&mut at, id(byte)).is_some(), "{name}: {byte} is listed and refused");
                    written.push(byte);
                }
                // As chats read it: content is held only where no tool may be called.
                let mut options = ParserOptions::default();
                options.tools = Some(Tools::default());
                options.tool_choice = ToolChoice::None;
                options.prompt = Some(prompt.clone());
                let mut parser = format.parser(&options).unwrap();
                parser.push(&written);
                parser.push(b"X42");
                let (_, message) = parser.finish(true);
                assert_eq!(
                    message.content.trim_start(),
                    "X42",
                    "{name}: after {:?}",
                    String::from_utf8_lossy(&written)
                );
            }
        }
    }
}
