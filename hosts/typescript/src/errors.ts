/** Errors of this package: each message says what is wrong, where, with which value, and how to mend it. */
export class TokenTrieError extends Error {
  override name = "TokenTrieError";
  /** The status of the C function that failed, such as `TOKENTRIE_ERROR_PAYLOAD`; undefined where none was called. */
  status?: string;
}

/** A payload, a descriptor or a leaf that cannot be used. */
export class PayloadError extends TokenTrieError {
  override name = "PayloadError";
}

/** A spec that cannot be read or used; the message begins with the place, as `$.then[1].integer.min`. */
export class SpecError extends TokenTrieError {
  override name = "SpecError";
}

/** Sequences that make no trie. */
export class SetError extends TokenTrieError {
  override name = "SetError";
}

/** A `.ttrie` file that cannot be read or written, or that is damaged. */
export class FileError extends TokenTrieError {
  override name = "FileError";
}

/** A vocabulary, or ids outside it. */
export class VocabularyError extends TokenTrieError {
  override name = "VocabularyError";
}

/** A token that is not allowed at its position. */
export class TokenNotAllowedError extends TokenTrieError {
  override name = "TokenNotAllowedError";
}

/** A tokenizer that returned an error, or a value other than ids. */
export class TokenizerError extends TokenTrieError {
  override name = "TokenizerError";
}

/** An argument of a wrong kind or size: nothing was written. */
export class ArgumentError extends TokenTrieError {
  override name = "ArgumentError";
}

/** The shared library: not found, of another version, or without a function that is needed. */
export class LibraryError extends TokenTrieError {
  override name = "LibraryError";
}

/** An object that was closed or freed before, or that belongs to another owner. */
export class HandleError extends TokenTrieError {
  override name = "HandleError";
}

/** A call on a session that is in the middle of another one. */
export class BusyError extends TokenTrieError {
  override name = "BusyError";
}

/** A model file, or a forward pass. */
export class ModelError extends TokenTrieError {
  override name = "ModelError";
}

/** A generation that was cancelled. Its name is `AbortError`, as for `AbortSignal`. */
export class CancelledError<Partial = unknown> extends TokenTrieError {
  override name = "AbortError";

  constructor(
    message: string,
    /** Output before the cancellation. */
    readonly partial: Partial,
    /** Reason of the signal: `signal.reason`. */
    cause?: unknown,
  ) {
    super(message, { cause });
  }
}
