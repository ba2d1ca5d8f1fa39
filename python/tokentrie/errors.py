"""Errors and the warning of the package: every error is a `TokenTrieError`.

Example:
    >>> import tokentrie
    >>> try:
    ...     tokentrie.Regex("[")
    ... except tokentrie.TokenTrieError as error:
    ...     print(type(error).__name__)
    RuleError
"""

from tokentrie._native import (
    CancelledError,
    ContextError,
    InvalidValueError,
    ModelError,
    OptionError,
    PayloadError,
    QueueFullError,
    ReceiptError,
    RuleError,
    TemplateError,
    TimedOutError,
    TokenNotAllowedError,
    TokenTrieError,
    TokenTrieWarning,
    TrieError,
    TruncatedError,
    VocabularyError,
)

__all__ = [
    "CancelledError",
    "ContextError",
    "InvalidValueError",
    "ModelError",
    "OptionError",
    "PayloadError",
    "QueueFullError",
    "ReceiptError",
    "RuleError",
    "TemplateError",
    "TimedOutError",
    "TokenNotAllowedError",
    "TokenTrieError",
    "TokenTrieWarning",
    "TrieError",
    "TruncatedError",
    "VocabularyError",
]
