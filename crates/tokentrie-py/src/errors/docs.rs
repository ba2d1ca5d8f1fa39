//! The docstrings of the exception classes.

use std::ffi::CStr;

pub(crate) const BASE: &CStr = c"Base of every error that tokentrie defines.

Example:
    >>> try:
    ...     tokentrie.Trie.from_sequences([])
    ... except tokentrie.TokenTrieError as error:
    ...     print(type(error).__name__)
    TrieError
";

pub(crate) const PAYLOAD: &CStr =
    c"A payload that is not JSON, not of the documented form, or has no usable leaf; it says line, column and field.

Also a ValueError.

Example:
    >>> tokentrie.Trie.from_payload('{\"descriptors\": 5}')
    Traceback (most recent call last):
        ...
    tokentrie.errors.PayloadError: payload, line 1, column 17, field descriptors: ...
";

pub(crate) const TRIE: &CStr = c"Sequences, texts or sets that make no trie, or a file that holds none.

None at all, an empty one, names that do not match, texts that cannot be written. Also a ValueError.

Example:
    >>> tokentrie.Trie.from_sequences([[1], []])
    Traceback (most recent call last):
        ...
    tokentrie.errors.TrieError: row 1 is empty: a leaf needs at least one token
";

pub(crate) const RULE: &CStr = c"A pattern, grammar or schema that makes no rule, or a rule that leads into a dead end.

It says where, and what is wrong there. Also a ValueError.

Example:
    >>> tokentrie.Regex('[0-9')
    Traceback (most recent call last):
        ...
    tokentrie.RuleError: ...
";

pub(crate) const INVALID: &CStr =
    c"A text that follows its constraint, and that its class refuses, as validators of pydantic may.

`text` is that text, and `__cause__` what the class raised. `partial` is what was generated, a Generated or a
Message; None of a text that was only parsed. `on_invalid=\"none\"` gives that instead of an error. Also a ValueError.

Example:
    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Even:
    ...     n: int
    ...     def __post_init__(self):
    ...         if self.n % 2:
    ...             raise ValueError('it is odd')
    >>> try:
    ...     tokentrie.JsonSchema(Even).parse('{\"n\": 3}')
    ... except tokentrie.errors.InvalidValueError as error:
    ...     print(error.text)
    {\"n\": 3}
";

pub(crate) const TRUNCATED: &CStr =
    c"A value that was cut off before it was whole: by `max_tokens`, or because the context was full.

`text` is what was written of it; `partial` the result, a Generated or a Message, or with `n` the list.
`on_invalid=\"none\"` gives that instead of an error: its value is None, and `invalid` says why.

Example:
    >>> try:
    ...     tokentrie.Model().generate('Ten digits: ', tokentrie.Regex('[0-9]{10}'), max_tokens=2)
    ... except tokentrie.errors.TruncatedError as error:
    ...     print(len(error.partial.tokens), error.text == error.partial.text)
    2 True
";

pub(crate) const VOCABULARY: &CStr =
    c"A token id that the vocabulary does not have, or a vocabulary that cannot be used for what is asked.

Example:
    >>> tokentrie.Trie.from_sequences([[1, 10]], vocab=10)
    Traceback (most recent call last):
        ...
    tokentrie.errors.VocabularyError: row 0, position 1: token id 10 is outside the vocabulary of 10 tokens
";

pub(crate) const NOT_ALLOWED: &CStr =
    c"A token that may not come next; it says which, where, and what was allowed. The state is as before.

Example:
    >>> tokentrie.Sampler(10, tokentrie.Trie.from_sequences([[2], [5]])).accept(3)
    Traceback (most recent call last):
        ...
    tokentrie.TokenNotAllowedError: token 3 at position 0 is not allowed there: only [2, 5] may follow
";

pub(crate) const OPTION: &CStr = c"A setting or request out of range; it says which, its value and what it may be.

Also a ValueError.

Example:
    >>> tokentrie.Sampling(top_p=1.5)
    Traceback (most recent call last):
        ...
    tokentrie.errors.OptionError: top_p is 1.5: it must be from 0 to 1
";

pub(crate) const MODEL: &CStr = c"A model file that cannot be used, or a decode that failed.

Example:
    >>> tokentrie.Model('missing.gguf')
    Traceback (most recent call last):
        ...
    tokentrie.errors.ModelError: cannot read the model file \"missing.gguf\": ...
";

pub(crate) const CONTEXT: &CStr = c"The context window is too small for the prompt or the output.

Example:
    >>> tokentrie.Model(n_ctx=32).generate([5] * 33)
    Traceback (most recent call last):
        ...
    tokentrie.errors.ContextError: ... the context has room for 32 ...
";

pub(crate) const CANCELLED: &CStr =
    c"The call was ended by a CancelToken or `Model.cancel`; the model can be used again.

`partial` is the Generated so far, whose `finish` is 'stopped'; of `Model.chat` the Message so far, whose `finish`
is 'cancelled'; None where nothing was generated.

Example:
    >>> model = tokentrie.Model()
    >>> model.generate('Once', on_step=lambda step: model.cancel())
    Traceback (most recent call last):
        ...
    tokentrie.errors.CancelledError: stopped on request ...
";

pub(crate) const TIMED_OUT: &CStr = c"The call took longer than its `timeout`; the model can be used again.

Also a TimeoutError. `partial` is as for CancelledError; None where
it was over before anything was generated.

Example:
    >>> try:
    ...     tokentrie.Model().generate('Once', max_tokens=1000, timeout=0.0)
    ... except tokentrie.errors.TimedOutError as error:
    ...     print(error)
    the timeout of 0 s was over before there was a result
";

pub(crate) const QUEUE_FULL: &CStr =
    c"As many calls wait for a slot of the model as may: `Model(path, slots=8, max_queue=1024)`. Try again later.

Example:
    >>> model = tokentrie.Model(slots=2, max_queue=0)
    >>> model.engine.queued
    0
";

pub(crate) const TEMPLATE: &CStr =
    c"A chat template that is not Jinja, refuses the messages, fails, or does more than it may; it says the line.

Example:
    >>> tokentrie.ChatTemplate('{{ raise_exception(\"no tools\") }}').render([])
    Traceback (most recent call last):
        ...
    tokentrie.TemplateError: refused in line 1: no tools
";

pub(crate) const RECEIPT: &CStr =
    c"A receipt that does not hold: it was changed, or is of another constraint, vocabulary or key.

Example:
    >>> model = tokentrie.Model()
    >>> receipt = model.generate('The sky is ', ['blue', 'red'], receipt=True).receipt
    >>> receipt['steps'][0]['token'] += 1
    >>> tokentrie.receipts.verify_receipt(receipt, ['blue', 'red'], vocab=model.vocab)
    Traceback (most recent call last):
    tokentrie.errors.ReceiptError: the seal does not fit: the receipt was changed, or sealed with another key
";

pub(crate) const WARNING: &CStr = c"Something was left out, such as leaves whose ids the vocabulary does not have.

Example:
    >>> import warnings
    >>> leaves = [{'name': 'IN', 'tokens': [1]}, {'name': 'OUT', 'tokens': [10]}]
    >>> payload = {'descriptors': [{'path': 'action', 'leaves': leaves}]}
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter('always')
    ...     trie = tokentrie.Trie.from_payload(payload, vocab=10)
    >>> (trie.names, [warning.category.__name__ for warning in caught])
    (['IN'], ['TokenTrieWarning'])
";
