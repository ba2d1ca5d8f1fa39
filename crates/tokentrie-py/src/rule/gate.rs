//! Thinking before a value.

use crate::convert::gil::released;
use crate::convert::ids::{shown, tokens};
use crate::convert::words::{After, Mode, unsigned};
use crate::errors::{Class, Result};
use crate::model::options::Options;
use crate::rows::sampler::Sampler;
use crate::rows::sampling::{Given, Keywords, Sampling};
use crate::spec::payloads::Cache;
use crate::spec::{Around, as_object, data_of, of_spec, spec_of, with_host};
use crate::vocab::VocabArg;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use std::sync::Arc;
use tokentrie::constraint::{Marker, Object, Over, OwnVocabulary, Spec, ThinkSpec};
use trie_core::{AnyConstraint, Budget, Constraint, Opening, SpanRules, Thought, TokenId, Unconstrained};

/// Thinking before a value: free text up to the end marker, or up to a budget, and then another constraint.
///
/// It has the methods of a Sampler, and is a constraint itself: for `Sampler`, `Batch` and `Model.generate`, where
/// it begins anew. While thinking everything may come but the first token of the begin marker. Once the model writes
/// the first token of the end marker, the rest of it is forced. When the budget is used up, `message` and the end
/// marker are forced, on top of it; forced tokens cost no forward pass, and a token against them raises. After
/// thinking, also after the value, the first tokens of both markers may not come in free text; what a set names
/// stays legal. Can be pickled as it was made, where `then` can; not once it has taken tokens.
///
/// Args:
///     begin: the begin marker: token ids, or a str, which is tokenised with its control tokens; may be empty.
///     end: the end marker, likewise; not empty.
///     budget: the most tokens thought. None: no limit. 0: the end marker comes at once.
///     then: what follows: whatever is a constraint for `Sampler`, or a Sampler, whose vocabulary, mode, seed and other
///         options are taken over. None: anything.
///     started: whether the begin marker is in the prompt already. If not it is forced.
///     optional: with `started=False`: the model may write the begin marker, or go straight to `then`.
///     message: what is said before the end marker when the budget is used up: token ids or a str.
///     budget_from: "start" counts a begin marker that is written here, "begin" counts from its end.
///     at_once: False looks for the end marker as a whole, for markers whose tokens are ordinary text: "<", "/think".
///     masked: ids that may not come while thinking. None: those that end a generation, where the vocabulary is known,
///         so that there is always a value.
///     vocab: a Vocab or the vocabulary size, to use it by itself. Not needed where `then` is a Sampler, or where it is
///         given to something as a constraint.
///     mode, end_tokens, after, sampling: as for `Sampler`, which only counts where it is used by itself.
///
/// Raises:
///     OptionError: there is no end marker, the message holds it, a setting is out of range, `then` is a Sampler and
///         options stand beside it, or a token begins both the optional begin marker and what follows.
///     VocabularyError: ids are outside the vocabulary, or a str is given and nothing tokenises it.
///
/// Example:
///     >>> answers = tokentrie.Trie.from_sequences([[1], [2]], names=["yes", "no"])
///     >>> gate = tokentrie.rules.ThinkGate([7], [8, 9], budget=3, then=answers, vocab=16)
///     >>> gate.accept([4, 5, 4])
///     >>> gate.forced()
///     array([8, 9], dtype=int32)
///     >>> gate.accept([8, 9, 2])
///     >>> (gate.leaf.name, gate.thinking, gate.forced_tokens, gate.cut_short)
///     ('no', 3, 2, True)
///     >>> gate = tokentrie.rules.ThinkGate("<think>", "</think>", budget=4, then=["yes", "no"])
///     >>> tokentrie.Model().generate("Yes or no? ", gate).leaf.name in ("yes", "no")
///     True
#[pyclass(frozen, extends = Sampler, module = "tokentrie.rules")]
pub(crate) struct ThinkGate(Arc<Gate>);

/// Arguments of a gate, independent of a vocabulary.
struct Gate {
    /// Thinking options, with the following constraint in `then`.
    think: ThinkSpec,
    then: Option<Py<PyAny>>,
    /// The arguments that it was made of, but `then`.
    arguments: Py<PyDict>,
}

/// The tokens that are given.
fn marker(what: &'static str, given: &Bound<'_, PyAny>) -> Result<Marker> {
    if let Ok(text) = given.cast::<PyString>() {
        return Ok(Marker::Text(text.to_str()?.into()));
    }
    Ok(Marker::Ids(tokens(given, &format!("{what}, "))?))
}

impl Gate {
    fn own(&self) -> Option<&Arc<trie_text::Vocab>> {
        self.think.vocab.as_ref().map(|own| &own.0)
    }

    /// The sampler that follows, if it is one.
    fn sampler<'py>(&self, py: Python<'py>) -> Option<Bound<'py, Sampler>> {
        let sampler = self.then.as_ref()?.bind(py).cast::<Sampler>().ok()?;
        (!sampler.get().is_unbound()).then(|| sampler.clone())
    }

    /// `vocab` is what it will be used with, where that is known.
    fn spec(&self, py: Python<'_>, vocab: Option<&Arc<trie_text::Vocab>>) -> Result<Spec> {
        if let Some(sampler) = self.sampler(py) {
            let rules = Arc::clone(sampler.get().lock(py)?.span().rules());
            return Ok(Spec::Object(Object::Spans(self.over(&rules, vocab)?.constraints().into())));
        }
        let then = self.then.as_ref().map(|then| spec_of("then", then.bind(py), self.own().or(vocab)));
        Ok(self.before(then.transpose()?.unwrap_or(Spec::Any)))
    }

    fn before(&self, then: Spec) -> Spec {
        Spec::Think(Box::new(ThinkSpec { then, ..self.think.clone() }))
    }

    /// Rules in which thinking stands before the constraints of others.
    fn over(&self, rules: &SpanRules, vocab: Option<&Arc<trie_text::Vocab>>) -> Result<SpanRules> {
        let options = self.think.options(vocab, rules.end_of_generation()).map_err(of_spec)?;
        let ends = rules.end_tokens();
        rules.map_constraints(|then| {
            // What was given to the sampler goes along where the gate is used elsewhere.
            let then = match then.as_trie() {
                Some(trie) if trie.end_tokens() != ends => trie.clone().with_end_tokens(ends).into(),
                _ => then.clone(),
            };
            Ok(AnyConstraint::new(trie_core::ThinkGate::new(options.clone(), then)?))
        })
    }
}

impl ThinkGate {
    /// Returns the following constraint, as it was given.
    pub(crate) fn then<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyAny>> {
        self.0.then.as_ref().map(|then| then.bind(py).clone())
    }

    /// The constraints by path that it stands for, at their start.
    ///
    /// # Errors
    /// As the class.
    pub(crate) fn spec(&self, py: Python<'_>, vocab: Option<&Arc<trie_text::Vocab>>) -> Result<Spec> {
        self.0.spec(py, vocab)
    }

    /// As data, as far as it is that.
    pub(crate) fn data(&self, py: Python<'_>) -> Result<Spec> {
        match &self.0.then {
            Some(then) if self.0.sampler(py).is_none() => {
                data_of("then", then.bind(py)).map(|then| self.0.before(then))
            }
            _ => self.spec(py, None),
        }
    }

    /// By their names, in a form that can be pickled.
    fn arguments<'py>(
        py: Python<'py>,
        think: &ThinkSpec,
        vocab: Option<&VocabArg<'_>>,
        mode: Option<Mode>,
        end_tokens: Option<&Bound<'_, PyAny>>,
        after: Option<After>,
        sampling: Option<&Bound<'_, Sampling>>,
    ) -> Result<Bound<'py, PyDict>> {
        let ids = |ids: &[TokenId]| ids.iter().map(|token| token.get()).collect::<Vec<u32>>();
        let dict = PyDict::new(py);
        for (name, marker) in [("begin", &think.begin), ("end", &think.end), ("message", &think.message)] {
            match marker {
                Marker::Text(text) => dict.set_item(name, &**text)?,
                Marker::Ids(tokens) => dict.set_item(name, ids(tokens))?,
            }
        }
        dict.set_item("budget", think.budget.map(|budget| budget.tokens))?;
        let counted = think.budget.is_none_or(|budget| budget.with_begin);
        dict.set_item("budget_from", if counted { "start" } else { "begin" })?;
        dict.set_item("started", think.opening == Opening::Written)?;
        dict.set_item("optional", think.opening == Opening::Optional)?;
        dict.set_item("at_once", think.at_once)?;
        dict.set_item("masked", think.masked.as_deref().map(ids))?;
        match vocab {
            Some(VocabArg::Vocab(vocab)) => dict.set_item("vocab", vocab)?,
            Some(VocabArg::Size(size)) => dict.set_item("vocab", size)?,
            None => {}
        }
        // What is not given is the business of a Sampler that follows.
        if let Some(Mode(mode)) = mode {
            dict.set_item("mode", if mode == trie_core::Mode::Greedy { "greedy" } else { "sampled" })?;
        }
        if let Some(ends) = end_tokens {
            dict.set_item("end_tokens", ids(&tokens(ends, "end_tokens, ")?))?;
        }
        if let Some(After(after)) = after {
            dict.set_item("after", if after == trie_core::After::Free { "free" } else { "stop" })?;
        }
        if let Some(sampling) = sampling {
            dict.set_item("sampling", sampling)?;
        }
        Ok(dict)
    }

    fn thought(slf: &Bound<'_, Self>) -> Result<Thought> {
        Ok(slf.as_super().get().lock(slf.py())?.span().thought())
    }
}

/// The sampler that a gate is by itself.
fn bound(py: Python<'_>, given: &Gate, vocab: Option<&VocabArg<'_>>, options: &Options<'_, '_>) -> Result<Sampler> {
    if let Some(sampler) = given.sampler(py) {
        let core = sampler.get().lock(py)?.clone();
        let rules = given.over(core.span().rules(), None)?;
        let mut gate = trie_core::Sampler::new(Arc::new(rules), core.options())?;
        gate.span_mut().activate(core.span().path())?;
        return Ok(Sampler::new(gate));
    }
    let Some(vocab) = vocab else {
        // What can be told without a vocabulary is told now.
        given.spec(py, None)?;
        let ThinkSpec { begin, end, message, .. } = &given.think;
        if [begin, end, message].iter().all(|marker| matches!(marker, Marker::Ids(_))) {
            let options = given.think.options(None, &[]).map_err(of_spec)?;
            trie_core::ThinkGate::new(options, AnyConstraint::new(Unconstrained))?;
        }
        return Sampler::unbound();
    };
    let around = Around { over: Over { n_vocab: vocab.size(), vocab: vocab.core() }, sets: None, cache: Cache::Thread };
    let spec = given.spec(py, vocab.core())?;
    let spans = with_host(py, &around, |over, host| spec.constraint(over, host))?;
    let sampler = options.keywords.options(py)?;
    let rules = SpanRules::new(spans, vocab.size())?;
    if let Some(vocab) = vocab.core() {
        let mut sets = rules.constraints().iter().flat_map(|(_, constraint)| constraint.sets());
        released(py, || sets.try_for_each(|set| vocab.check_set(set)))?;
    }
    Ok(Sampler::new(trie_core::Sampler::new(Arc::new(options.rules(rules, vocab.end_of_generation())?), sampler)?))
}

#[pymethods]
impl ThinkGate {
    #[new]
    #[pyo3(
        signature = (
            begin, end, budget=None, then=None, *, started=true, optional=false, message=None, budget_from="start",
            at_once=true, masked=None, vocab=None, mode=Given(None), end_tokens=None, after=Given(None), sampling=None
        ),
        text_signature = "(begin, end, budget=None, then=None, *, started=True, optional=False, message=(), \
            budget_from=\"start\", at_once=True, masked=None, vocab=None, mode=\"greedy\", end_tokens=None, \
            after=\"free\", sampling=None)",
    )]
    #[expect(clippy::too_many_arguments, reason = "they are Python's arguments")]
    fn new(
        py: Python<'_>,
        begin: &Bound<'_, PyAny>,
        end: &Bound<'_, PyAny>,
        budget: Option<i64>,
        then: Option<&Bound<'_, PyAny>>,
        started: bool,
        optional: bool,
        message: Option<&Bound<'_, PyAny>>,
        budget_from: &str,
        at_once: bool,
        masked: Option<&Bound<'_, PyAny>>,
        vocab: Option<VocabArg<'_>>,
        mode: Given<Mode>,
        end_tokens: Option<&Bound<'_, PyAny>>,
        after: Given<After>,
        sampling: Option<&Bound<'_, Sampling>>,
    ) -> Result<PyClassInitializer<Self>> {
        if started && optional {
            let message = "optional=True goes with started=False: a begin marker in the prompt is not optional";
            return Err(Class::Option.error(message));
        }
        let with_begin = match budget_from {
            "start" => true,
            "begin" => false,
            other => {
                let message = format!("budget_from is {other:?}: it must be \"start\" or \"begin\"");
                return Err(Class::Option.error(message));
            }
        };
        let budget = budget.map(|budget| unsigned("budget", budget)).transpose()?;
        let opening = match (started, optional) {
            (true, _) => Opening::Written,
            (false, false) => Opening::Forced,
            (false, true) => Opening::Optional,
        };
        let think = ThinkSpec {
            begin: marker("begin", begin)?,
            end: marker("end", end)?,
            message: message.map_or(Ok(Marker::none()), |message| marker("message", message))?,
            budget: budget.map(|tokens| Budget { tokens, with_begin }),
            opening,
            at_once,
            masked: masked.map(|masked| tokens(masked, "masked, ")).transpose()?,
            then: Spec::Any,
            vocab: vocab.as_ref().and_then(VocabArg::core).map(|vocab| OwnVocabulary(Arc::clone(vocab))),
        };
        let arguments = Self::arguments(py, &think, vocab.as_ref(), mode.0, end_tokens, after.0, sampling)?;
        let gate =
            Gate { arguments: arguments.unbind(), think, then: then.map(as_object).transpose()?.map(Bound::unbind) };
        if let (Some(_), Some(then)) = (gate.sampler(py), then) {
            let beside = [
                ("mode", mode.0.is_some()),
                ("end_tokens", end_tokens.is_some()),
                ("after", after.0.is_some()),
                ("sampling", sampling.is_some()),
                ("vocab", matches!(vocab, Some(VocabArg::Size(_)))),
            ];
            if let Some((name, _)) = beside.into_iter().find(|(_, given)| *given) {
                let message = format!("{name} is given beside the Sampler {}, which has its own", shown(then));
                return Err(Class::Option.error(message));
            }
        }
        let keywords = Keywords { call: "ThinkGate", mode, placed: None, settings: None, sampling };
        let after = after.0.unwrap_or(After(trie_core::After::Free));
        let sampler = bound(py, &gate, vocab.as_ref(), &Options { keywords, end_tokens, after })?;
        Ok(PyClassInitializer::from(sampler).add_subclass(Self(Arc::new(gate))))
    }

    /// An independent copy at the same position. Cost: O(1).
    ///
    /// Returns:
    ///     ThinkGate.
    ///
    /// Example:
    ///     >>> gate = tokentrie.rules.ThinkGate([7], [8], budget=3, vocab=16)
    ///     >>> copy = gate.clone()
    ///     >>> copy.accept([4, 5])
    ///     >>> (copy.thinking, gate.thinking)
    ///     (2, 0)
    fn clone(slf: &Bound<'_, Self>) -> Result<Py<Self>> {
        let core = slf.as_super().get().lock(slf.py())?.clone();
        let copy = PyClassInitializer::from(Sampler::new(core)).add_subclass(Self(Arc::clone(&slf.get().0)));
        Ok(Py::new(slf.py(), copy)?)
    }

    /// int: tokens of markers and message that were forced: they need no forward pass.
    #[getter]
    fn forced_tokens(slf: &Bound<'_, Self>) -> Result<usize> {
        Ok(Self::thought(slf)?.forced)
    }

    /// bool: whether the budget closed it, and not the model.
    #[getter]
    fn cut_short(slf: &Bound<'_, Self>) -> Result<bool> {
        Ok(Self::thought(slf)?.cut_short)
    }

    /// int: tokens of the end marker that the last tokens are; all of them once thinking is over.
    #[getter]
    fn end_matched(slf: &Bound<'_, Self>) -> Result<usize> {
        Ok(Self::thought(slf)?.end_matched)
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> Result<(Bound<'py, PyAny>, (Bound<'py, PyDict>,))> {
        let (py, gate) = (slf.py(), &slf.get().0);
        let sampler = slf.as_super().get();
        if !sampler.is_unbound() && sampler.lock(py)?.span().accepted() > 0 {
            let message = "a gate that has taken tokens cannot be pickled: pickle it before, or after reset()";
            return Err(PyTypeError::new_err(message).into());
        }
        let arguments = gate.arguments.bind(py).copy()?;
        arguments.set_item("then", gate.then.as_ref().map(|then| then.bind(py)))?;
        Ok((slf.get_type().getattr("_restore")?, (arguments,)))
    }

    /// Restores the gate from `__reduce__`.
    #[staticmethod]
    fn _restore<'py>(arguments: &Bound<'py, PyDict>) -> PyResult<Bound<'py, PyAny>> {
        arguments.py().get_type::<Self>().call((), Some(arguments))
    }

    fn __repr__(slf: &Bound<'_, Self>) -> Result<String> {
        let sampler = slf.as_super().get();
        if sampler.is_unbound() {
            return Ok("<tokentrie.rules.ThinkGate: without a vocabulary>".to_owned());
        }
        let sampler = sampler.lock(slf.py())?;
        let (span, state) = (sampler.span(), sampler.status().as_str());
        Ok(format!(
            "<tokentrie.rules.ThinkGate: {state}, {} tokens thought, depth {}>",
            span.thought().tokens,
            span.depth()
        ))
    }

    fn __add__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
        crate::convert::added::added(slf.as_any(), other)
    }

    fn __radd__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
        crate::convert::added::added(other, slf.as_any())
    }
}
