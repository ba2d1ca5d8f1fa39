//! Prompts of a decision.

use super::layout::Filling;
use super::options::{Decide, ListOrder, Readout};
use super::question::{Kind, Question, as_text};
use super::spelling::Spellings;
use serde_json::{Value, json};
use trie_core::work::{LimitExceeded, spend};

/// The label of the option that is listed at a place: A to Z, then AA.
fn letters(mut place: usize) -> String {
    let mut label = Vec::new();
    loop {
        label.push(b'A' + (place % 26) as u8);
        match (place / 26).checked_sub(1) {
            Some(rest) => place = rest,
            None => break,
        }
    }
    label.reverse();
    String::from_utf8(label).unwrap_or_default()
}

/// Returns the texts that are scored for the options whose texts are read.
pub(super) fn spell(read: Vec<String>, options: &Decide) -> Spellings {
    if options.spellings { Spellings::variants(read) } else { Spellings::of_texts(read) }
}

/// Returns the text read for each option, in the order of the question, whose texts are given: `order[place]` is the
/// option that is listed there.
pub(super) fn read_texts(question: &Question, texts: &[String], readout: Readout, order: &[usize]) -> Vec<String> {
    match (&question.kind, readout) {
        (Kind::Predicate { .. }, _) | (_, Readout::Text) => texts.to_vec(),
        (Kind::Score(_), Readout::Label) => (0..texts.len()).map(|level| level.to_string()).collect(),
        (Kind::Choice(_), Readout::Label) => {
            let mut labels = vec![String::new(); texts.len()];
            order.iter().enumerate().for_each(|(place, &option)| labels[option] = letters(place));
            labels
        }
    }
}

/// Returns the orders in which the options of a question are listed: all permutations if there are few options and as
/// many orders are wanted, else a balanced design. Levels keep their order, and options that are not listed have only
/// one.
pub(super) fn orders(question: &Question, count: usize, options: &Decide) -> Vec<Vec<usize>> {
    /// So many options have 24 orders.
    const FEW: usize = 4;
    let plain: Vec<usize> = (0..count).collect();
    let most = options.permute as usize;
    if matches!(question.kind, Kind::Score(_)) || !options.list_options || most == 1 {
        return vec![plain];
    }
    let all = (1..=count.min(FEW)).product::<usize>();
    if count <= FEW && most >= all && options.order != ListOrder::Balanced {
        return permutations(plain);
    }
    let mut designed = balanced_orders(count);
    designed.truncate(most);
    designed
}

/// Returns the order of a question's options by their texts and meanings, which no order of the caller changes: what is
/// computed for them in this order has the same bits. Only the options of a choice have an order that says nothing.
pub(super) fn canonical_order(question: &Question) -> Vec<usize> {
    let (texts, meanings) = (question.kind.texts(), question.kind.meanings());
    let mut order: Vec<usize> = (0..texts.len()).collect();
    if matches!(question.kind, Kind::Choice(_)) {
        let key = |&option: &usize| (&texts[option], meanings[option].map(as_text), option);
        order.sort_by_cached_key(key);
    }
    order
}

/// Returns whether the prompt of a question lists options that can be branches.
pub(super) fn lists_branches(question: &Question, options: &Decide) -> bool {
    let has_lines = match &question.kind {
        Kind::Choice(options) => options.len() > 1,
        Kind::Predicate { yes, no } => yes.is_some() || no.is_some(),
        Kind::Score(_) => false,
    };
    has_lines && options.list_options && options.prompt.options_line() == Ok(true)
}

/// Returns orders in which each option stands in each place, and behind each other option, equally often (Williams): as
/// many as there are options, or twice as many if their number is odd. The first is the plain one.
fn balanced_orders(count: usize) -> Vec<Vec<usize>> {
    // 0, 1, n - 1, 2, n - 2, ...: the steps between neighbours are all different.
    let zigzag: Vec<usize> =
        (0..count).map(|place| if place % 2 == 1 { place / 2 + 1 } else { (count - place / 2) % count }).collect();
    let mut place_of = vec![0; count];
    zigzag.iter().enumerate().for_each(|(place, &option)| place_of[option] = place);
    // The options are renamed so that the first order is the plain one.
    let order = |by: usize| zigzag.iter().map(|option| place_of[(option + by) % count]).collect::<Vec<usize>>();
    let orders = (0..count).map(order);
    if count.is_multiple_of(2) {
        return orders.collect();
    }
    // An order and its reverse follow each other, so that few orders are balanced too.
    orders.flat_map(|order| [order.clone(), order.into_iter().rev().collect()]).collect()
}

fn permutations(items: Vec<usize>) -> Vec<Vec<usize>> {
    if items.len() < 2 {
        return vec![items];
    }
    let mut all = Vec::new();
    for (at, &first) in items.iter().enumerate() {
        let rest = [&items[..at], &items[at + 1..]].concat();
        all.extend(permutations(rest).into_iter().map(|rest| [&[first], &rest[..]].concat()));
    }
    all
}

/// How the options of a question are listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Listing {
    /// In this order: the option at each place.
    Ordered(Vec<usize>),
    /// As branches of the prompt, in the order of the question: [`OPTIONS_MARK`] stands in their place.
    Branches,
    /// Not at all, because branches cannot be listed there: in solved examples.
    Unlisted,
}

/// Stands in a prompt where its branches come. Only the template's output is searched for it, and it must stand there
/// once: a state that says it, too, is asked about in balanced orders.
pub(super) const OPTIONS_MARK: &str = "options-of-tokentrie-2f61c0e19b7d4a58";

/// Returns the question, its options and its instructions for the layout; `read` is the text read for each option.
pub(super) fn filling(
    question: &Question,
    texts: &[String],
    read: &[String],
    options: &Decide,
    listing: &Listing,
) -> Result<Filling, LimitExceeded> {
    let own = question.instructions.as_ref().map_or_else(|| question.name.clone(), as_text);
    let told = options.instructions.iter().map(as_text).chain([own]).filter(|text| !text.is_empty());
    let plain: Vec<usize> = (0..texts.len()).collect();
    let order = if let Listing::Ordered(order) = listing { order } else { &plain };
    let meanings = question.kind.meanings();
    let is_label = options.readout == Readout::Label && !matches!(question.kind, Kind::Predicate { .. });
    let is_plain = matches!(&question.kind, Kind::Predicate { yes: None, no: None });
    let is_listed = options.list_options && *listing != Listing::Unlisted;
    let is_inline = options.is_inline
        && is_listed
        && *listing != Listing::Branches
        && !is_label
        && !matches!(question.kind, Kind::Predicate { .. })
        && meanings.iter().all(Option::is_none);
    let answer = match &question.kind {
        Kind::Predicate { .. } if *listing != Listing::Branches => {
            let [first, second] = if order.first() == Some(&1) { ["no", "yes"] } else { ["yes", "no"] };
            format!("Answer {first} or {second}.")
        }
        Kind::Choice(_) if is_label => "Answer with the letter alone.".to_owned(),
        Kind::Score(_) if is_label => "Answer with the number alone.".to_owned(),
        _ if is_inline => {
            let texts: Vec<&str> = order.iter().map(|&option| &texts[option][..]).collect();
            format!("Choose one: {}.", texts.join(", "))
        }
        _ if is_listed => "Answer with one of these alone.".to_owned(),
        _ => "Answer with the name alone.".to_owned(),
    };
    let listed = if is_listed && !is_plain && !is_inline { &order[..] } else { &[] };
    let options = if *listing == Listing::Branches {
        OPTIONS_MARK.to_owned()
    } else {
        let read = is_label.then_some(read);
        let lines = listed.iter().map(|&option| option_line(option, texts, read, &meanings));
        lines.collect::<Result<Vec<_>, LimitExceeded>>()?.join("\n")
    };
    Ok(Filling { instructions: told.collect::<Vec<_>>().join("\n"), options, answer })
}

/// Returns the line of an option, with its label if labels are read.
fn option_line(
    option: usize,
    texts: &[String],
    labels: Option<&[String]>,
    meanings: &[Option<&Value>],
) -> Result<String, LimitExceeded> {
    spend(1)?;
    let said = match labels {
        Some(labels) => format!("{}: {}", labels[option], texts[option]),
        None => format!("- {}", texts[option]),
    };
    Ok(meanings[option].map_or_else(|| said.clone(), |meaning| format!("{said}: {}", as_text(meaning))))
}

/// Returns the lines of a question's options, each with its line break, for branches.
pub(super) fn branch_lines(question: &Question) -> Result<Vec<String>, LimitExceeded> {
    let (texts, meanings) = (question.kind.texts(), question.kind.meanings());
    let line = |option| Ok(format!("{}\n", option_line(option, &texts, None, &meanings)?));
    (0..texts.len()).map(line).collect()
}

/// The turns of a state that is a conversation: an array of objects, each with a role and something that was said.
pub(super) fn turns(state: &Value) -> Option<&Vec<Value>> {
    let said = |turn: &Value| turn.get("content").is_some() || turn.get("tool_calls").is_some();
    let is_turn = |turn: &Value| turn.get("role").is_some_and(Value::is_string) && said(turn);
    state.as_array().filter(|turns| !turns.is_empty() && turns.iter().all(is_turn))
}

/// Returns the turns of the examples that answer a question: its prompt about their state, and the reply.
pub(super) fn example_turns(question: &Question, read: &[String], filling: &Filling, options: &Decide) -> Vec<Value> {
    let solved = options.examples.iter().filter_map(|example| {
        let right = question.right_option(example.answers.get(&question.name)?).ok()?;
        let asked = options.prompt.fill(&example.state, filling);
        let reply = reply_with_prefix(options.prefix(), &read[right]);
        Some([json!({"role": "user", "content": asked}), json!({"role": "assistant", "content": reply})])
    });
    solved.flatten().collect()
}

/// Returns a reply with its beginning, and a space between them where none is.
fn reply_with_prefix(prefix: &str, text: &str) -> String {
    let space = if prefix.is_empty() || prefix.ends_with(char::is_whitespace) { "" } else { " " };
    format!("{prefix}{space}{text}")
}

/// The messages of a prompt: solved examples, then a state with what is asked about it, which stands in the last turn
/// of the user.
pub(super) fn messages(state: &Value, filling: &Filling, solved: &[Value], options: &Decide) -> Vec<Value> {
    let asked = |state: &Value| json!({"role": "user", "content": options.prompt.fill(state, filling)});
    let mut all = match turns(state) {
        None => vec![asked(state)],
        Some(turns) => match turns.split_last() {
            Some((last, before)) if last["role"] == "user" && last["content"].is_string() => {
                [before, &[asked(&last["content"])]].concat()
            }
            _ => [&turns[..], &[asked(&"".into())]].concat(),
        },
    };
    let is_system = |message: &Value| message["role"] == "system";
    let first = usize::from(all.first().is_some_and(is_system));
    all.splice(first..first, solved.iter().cloned());
    if let Some(system) = &options.system {
        match all.first_mut().filter(|first| first["role"] == "system" && first["content"].is_string()) {
            Some(first) => {
                let told = first["content"].as_str().unwrap_or_default();
                first["content"] = format!("{system}\n\n{told}").into();
            }
            None => all.insert(0, json!({"role": "system", "content": system})),
        }
    }
    all
}

/// The state that says nothing, for a prior.
pub(super) fn without_content() -> Value {
    Value::String("N/A".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(options: &[&str]) -> Question {
        let options = options.iter().map(|&option| (option.into(), None)).collect();
        Question { name: "team".to_owned(), instructions: None, kind: Kind::Choice(options) }
    }

    #[test]
    fn labels_go_on_behind_z() {
        assert_eq!([0, 25, 26, 27, 51, 52, 701, 702].map(letters), ["A", "Z", "AA", "AB", "AZ", "BA", "ZZ", "AAA"]);
        let all: std::collections::HashSet<String> = (0..20_000).map(letters).collect();
        assert_eq!(all.len(), 20_000);
    }

    #[test]
    fn orders_are_all_of_them_or_balanced() {
        let with = |permute| Decide { permute, ..Decide::default() };
        assert_eq!(orders(&question(&["a", "b", "c"]), 3, &with(6)).len(), 6);
        assert_eq!(orders(&question(&["a", "b", "c"]), 3, &with(2)), [[0, 1, 2], [2, 1, 0]]);
        assert_eq!(orders(&question(&["a", "b", "c", "d", "e"]), 5, &with(64)).len(), 10);
        assert_eq!(orders(&question(&["a"]), 1, &with(9)), [[0]]);
        let hidden = Decide { list_options: false, ..with(6) };
        assert_eq!(orders(&question(&["a", "b"]), 2, &hidden), [[0, 1]]);
    }

    #[test]
    fn each_option_is_in_each_place_and_behind_each_other_equally_often() {
        for count in 1..12 {
            let all = balanced_orders(count);
            assert_eq!(all.len(), if count % 2 == 0 { count } else { 2 * count });
            assert!(all[0].iter().copied().eq(0..count), "{all:?}");
            let mut at_place = vec![0; count * count];
            let mut behind = vec![0; count * count];
            for order in &all {
                order.iter().enumerate().for_each(|(place, option)| at_place[place * count + option] += 1);
                order.windows(2).for_each(|pair| behind[pair[0] * count + pair[1]] += 1);
            }
            assert!(at_place.iter().all(|&times| times == all.len() / count), "{count}: {all:?}");
            let pairs = (0..count * count).filter(|at| at / count != at % count);
            assert!(pairs.into_iter().all(|at| behind[at] == all.len() / count), "{count}: {all:?}");
        }
    }

    #[test]
    fn options_are_listed_in_their_order_and_labels_by_place() {
        let asked = |question: &Question, options: &Decide, order: &[usize]| {
            let texts = question.kind.texts();
            let read = read_texts(question, &texts, options.readout, order);
            let listing = Listing::Ordered(order.to_vec());
            options.prompt.fill(&"".into(), &filling(question, &texts, &read, options, &listing).unwrap())
        };
        let mut question = question(&["billing", "access"]);
        if let Kind::Choice(options) = &mut question.kind {
            options[0].1 = Some("Payments".into());
        }
        let options = Decide { instructions: Some("Be brief.".into()), ..Decide::default() };
        let text = asked(&question, &options, &[1, 0]);
        assert_eq!(text, "Be brief.\nteam\n- access\n- billing: Payments\nAnswer with one of these alone.");
        let labels = Decide { readout: Readout::Label, ..Decide::default() };
        let text = asked(&question, &labels, &[1, 0]);
        assert_eq!(text, "team\nA: access\nB: billing: Payments\nAnswer with the letter alone.");
        assert_eq!(read_texts(&question, &question.kind.texts(), Readout::Label, &[1, 0]), ["B", "A"]);
        question.instructions = Some("".into());
        let hidden = Decide { list_options: false, ..Decide::default() };
        assert_eq!(asked(&question, &hidden, &[0, 1]), "Answer with the name alone.");
    }

    #[test]
    fn a_question_stands_behind_the_state() {
        let user = |content: &str| json!({"role": "user", "content": content});
        let asked = |state: &Value, system: Option<&str>| {
            let filling = Filling { answer: "q".to_owned(), ..Filling::default() };
            messages(state, &filling, &[], &Decide { system: system.map(str::to_owned), ..Decide::default() })
        };
        assert_eq!(asked(&"s".into(), None), [user("s\n\nq")]);
        assert_eq!(asked(&json!({"a": 1}), None), [user("{\"a\":1}\n\nq")]);
        assert_eq!(asked(&json!([user("s")]), None), [user("s\n\nq")]);
        let answer = json!({"role": "assistant", "content": "a"});
        assert_eq!(asked(&json!([answer]), None), [answer, user("q")]);
        assert_eq!(asked(&json!([1]), None), [user("[1]\n\nq")]);
        assert_eq!(asked(&json!([{"role": "boss"}]), None), [user("[{\"role\":\"boss\"}]\n\nq")]);
        let system = |content: &str| json!({"role": "system", "content": content});
        assert_eq!(asked(&"s".into(), Some("t")), [system("t"), user("s\n\nq")]);
        assert_eq!(asked(&json!([system("u"), user("s")]), Some("t")), [system("t\n\nu"), user("s\n\nq")]);
    }
}
