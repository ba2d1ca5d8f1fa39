/* tokentrie: a language model says only what is allowed. C ABI, see docs/c.md.
 *
 * Every function returns a status unless it says otherwise: TOKENTRIE_OK, a positive status that is no error, or a
 * negative error. tokentrie_last_error() says what was wrong, where, and with which value.
 *
 * Handles are numbers below 2^53; 0 is none. A handle that was freed, or that is of another kind, is refused with
 * TOKENTRIE_ERROR_HANDLE. Every handle is freed once, with the function of its kind; what was made from it stays
 * usable. Handles may go from thread to thread. Vocabularies, tries and caches may be used by several threads at once;
 * a sampler or batch that another thread is using is refused with TOKENTRIE_ERROR_BUSY; sessions say what they do.
 *
 * Strings in are bytes with a length, without a zero at the end. Results go into buffers of the caller: `capacity` is
 * their size, `*count` becomes what there is. A buffer that is too small gives TOKENTRIE_ERROR_BUFFER, `*count` says
 * what it needs, and nothing was written or changed. A buffer may be NULL with capacity 0 to ask for the size.
 * Strings out have no zero at the end.
 *
 * Several items in one buffer come with their ends: item i is what lies between ends[i - 1] (0 for the first) and
 * ends[i]. Ends ascend, and the last one is the length of the buffer, which is given too.
 *
 * Token ids are int32_t from 0 on. Structures begin with their own size, which the caller sets: fields that are added
 * later count as 0 where the caller does not know them.
 */

#ifndef TOKENTRIE_H
#define TOKENTRIE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Version of this header. A library fits if tokentrie_abi_version() has the same upper 16 bits and lower 16 bits that
 * are no smaller. */
#define TOKENTRIE_ABI_VERSION 0x00010000

/* The most bytes of a payload in JSON or RTKT. */
#define TOKENTRIE_MAX_PAYLOAD 268435456

#define TOKENTRIE_FEATURE_LLAMA 1

typedef int32_t tokentrie_status;
enum {
  TOKENTRIE_OK = 0,
  /* There is none (yet): no leaf is complete, no token came in time. */
  TOKENTRIE_NONE = 1,
  /* 0, freed, or a handle of another kind. */
  TOKENTRIE_ERROR_HANDLE = -1,
  /* NULL where none may be, a number out of range, lengths that contradict each other. */
  TOKENTRIE_ERROR_ARGUMENT = -2,
  /* A buffer is too small: the count says what is needed. */
  TOKENTRIE_ERROR_BUFFER = -3,
  /* Bytes that are no UTF-8. */
  TOKENTRIE_ERROR_TEXT = -4,
  /* A payload (JSON or RTKT) that is malformed or has no usable leaf. */
  TOKENTRIE_ERROR_PAYLOAD = -5,
  /* Sequences that make no trie. */
  TOKENTRIE_ERROR_SET = -6,
  /* A .ttrie file that cannot be read or written. */
  TOKENTRIE_ERROR_FILE = -7,
  /* A token id that the vocabulary does not have, or a set for another vocabulary. */
  TOKENTRIE_ERROR_VOCAB = -8,
  /* A token that may not come here, or a request that does not fit the state. */
  TOKENTRIE_ERROR_NOT_ALLOWED = -9,
  /* A row of logits or a mask that is shorter than the vocabulary. */
  TOKENTRIE_ERROR_ROW = -10,
  /* A set from a damaged file, or a sampler that nothing may follow. */
  TOKENTRIE_ERROR_DAMAGED = -11,
  /* In use by another call: a generation that runs, another thread, or the callback that is calling. */
  TOKENTRIE_ERROR_BUSY = -12,
  /* No llama.cpp in the process, one whose table of callbacks is unknown, or a library without llama.cpp. */
  TOKENTRIE_ERROR_LLAMA = -13,
  /* A model that cannot be loaded or a forward pass that failed. */
  TOKENTRIE_ERROR_MODEL = -14,
  /* Ended by tokentrie_session_cancel. */
  TOKENTRIE_ERROR_CANCELLED = -15,
  /* Larger than a documented limit. */
  TOKENTRIE_ERROR_LIMIT = -16,
  /* A fault of the library; what was being changed is closed. */
  TOKENTRIE_ERROR_PANIC = -17
};

/* How a token is chosen among the allowed ones. */
enum {
  /* The highest logit, ties to the lowest id. */
  TOKENTRIE_MODE_GREEDY = 0,
  /* Temperature, top-k, top-p, min-p and a seeded draw over the allowed ones. */
  TOKENTRIE_MODE_SAMPLED = 1
};

/* What follows a complete leaf. */
enum {
  TOKENTRIE_AFTER_FREE = 0,
  /* Only end of generation; a session ends there. */
  TOKENTRIE_AFTER_STOP = 1
};

/* Where a sampler or a row is in its life. */
enum {
  TOKENTRIE_STATE_ACTIVE = 0,
  TOKENTRIE_STATE_COMPLETE = 1,
  TOKENTRIE_STATE_IDLE = 2,
  TOKENTRIE_STATE_OFF = 3
};

/* What may come next. */
enum {
  /* The listed tokens alone. */
  TOKENTRIE_ALLOWED_ONLY = 0,
  /* Everything; the listed tokens go on, all others end the value that ends here. */
  TOKENTRIE_ALLOWED_OPEN = 1,
  /* Everything; none is listed. */
  TOKENTRIE_ALLOWED_ALL = 2
};

/* Kinds of tokens in a vocabulary. */
enum {
  TOKENTRIE_TOKEN_NORMAL = 0,
  TOKENTRIE_TOKEN_CONTROL = 1,
  TOKENTRIE_TOKEN_END_OF_GENERATION = 2
};

/* Why a generation ended. */
enum {
  /* None has ended yet. */
  TOKENTRIE_FINISH_NONE = 0,
  /* The leaf is complete, and nothing shall follow it. */
  TOKENTRIE_FINISH_LEAF = 1,
  /* The model ended its output. */
  TOKENTRIE_FINISH_END_OF_GENERATION = 2,
  TOKENTRIE_FINISH_MAX_TOKENS = 3,
  TOKENTRIE_FINISH_CONTEXT_FULL = 4,
  TOKENTRIE_FINISH_CANCELLED = 5,
  TOKENTRIE_FINISH_ERROR = 6
};

typedef uint64_t tokentrie_vocab;
typedef uint64_t tokentrie_trie;
typedef uint64_t tokentrie_sampler;
typedef uint64_t tokentrie_batch;
typedef uint64_t tokentrie_cache;
typedef uint64_t tokentrie_session;

struct llama_vocab;
struct llama_sampler;
struct llama_sampler_i;

/* How a sampler or a batch chooses. All zero is greedy, free text after the leaf. */
typedef struct tokentrie_sampler_options {
  uint32_t size;
  int32_t mode;
  int32_t after;
  uint32_t top_k;    /* 0: all */
  float temperature; /* 0 takes the highest; not used in greedy mode */
  float top_p;       /* 0 counts as 1: all */
  float min_p;
  uint32_t seed;
  uint32_t has_seed; /* 0: the seed comes from the operating system */
} tokentrie_sampler_options;

typedef struct tokentrie_trie_info {
  uint32_t size;
  uint32_t tries;     /* by path; what follows is of the first */
  uint64_t leaves;
  uint64_t nodes;     /* with the root */
  uint64_t bytes;
  int32_t max_token;
  uint32_t max_depth;
  uint64_t empty_leaves;      /* left out of the payload: no tokens */
  uint64_t outside_vocabulary; /* left out of the payload: ids that the vocabulary does not have */
} tokentrie_trie_info;

typedef struct tokentrie_cache_stats {
  uint32_t size;
  uint32_t capacity;
  uint64_t held;
  uint64_t hits;
  uint64_t content_hits;
  uint64_t misses;
  uint64_t evictions;
} tokentrie_cache_stats;

/* The llama.cpp of a program. All of it belongs to one library that stays loaded. */
typedef struct tokentrie_llama_api {
  uint32_t size;
  /* Fields of struct llama_sampler_i in that library: sizeof(struct llama_sampler_i) / sizeof(void *). Unknown
   * sizes are refused. */
  uint32_t callback_fields;
  struct llama_sampler *(*sampler_init)(struct llama_sampler_i *iface, void *ctx);
  int32_t (*vocab_n_tokens)(const struct llama_vocab *vocab);
  bool (*vocab_is_eog)(const struct llama_vocab *vocab, int32_t token);
} tokentrie_llama_api;

/* How a model is opened. All zero takes the defaults. */
typedef struct tokentrie_session_options {
  uint32_t size;
  uint32_t n_ctx;        /* 0: 4096, or what the model was trained on if that is less */
  uint32_t n_batch;      /* 0: 512 */
  uint32_t n_threads;    /* 0: as many as pay off */
  uint32_t n_gpu_layers;
  int32_t after;         /* TOKENTRIE_AFTER_FREE: text goes on after the leaf; TOKENTRIE_AFTER_STOP */
  uint32_t seed;
  uint32_t has_seed;
} tokentrie_session_options;

typedef struct tokentrie_session_info {
  uint32_t size;
  int32_t generating;    /* 1 while a generation runs */
  int32_t has_trie;      /* 1 while a trie is set */
  int32_t state;         /* of the trie in the last generation: TOKENTRIE_STATE_… */
  int32_t finish;        /* of the last generation: TOKENTRIE_FINISH_… */
  int32_t slot;          /* of the last prefill, or -1 */
  uint32_t n_ctx;
  uint32_t n_vocab;
  uint64_t prompt_tokens;
  /* Of the last generation: */
  uint64_t tokens;
  uint64_t forced_tokens;
  uint64_t sampled_tokens;
  uint64_t forward_passes;
  uint64_t forward_passes_saved;
  uint64_t prompt_tokens_reused;
  uint64_t starved;
  double seconds;
} tokentrie_session_info;

typedef struct tokentrie_choice {
  uint32_t size;
  uint32_t best;         /* number of the most probable value */
  uint64_t values;
  double mass;           /* probability that the model says any of them unasked */
  uint64_t forward_passes;
  double seconds;
} tokentrie_choice;

/* Called for every token, in order, on the thread that generates. `text` is UTF-8 with a zero at the end: whole
 * characters that the token completes, often none; it lives until the callback returns. The last call of a generation
 * has is_done = 1, token -1 and empty text; it comes exactly once, also after an error and after cancel. Of this
 * library only tokentrie_session_cancel, tokentrie_session_info and tokentrie_last_error may be called for the
 * session that calls; others give TOKENTRIE_ERROR_BUSY. It must return: no exception, no longjmp. */
typedef void (*tokentrie_token_callback)(int32_t token, const char *text, int32_t is_done, void *user);

#ifdef __cplusplus
extern "C" {
#endif

/* --- The library ------------------------------------------------------------------------------------------------ */

/* Version of the library: compare with TOKENTRIE_ABI_VERSION. */
uint32_t tokentrie_abi_version(void);
/* TOKENTRIE_FEATURE_… bits: what this library was built with. */
uint32_t tokentrie_features(void);
/* What was wrong in the last call of this thread that failed; "" if there was none. UTF-8 with a zero at the end, valid
 * until the next call that fails on this thread. */
const char *tokentrie_last_error(void);
/* The name of a status, such as "TOKENTRIE_ERROR_HANDLE"; "unknown status" for others. */
const char *tokentrie_status_name(tokentrie_status status);

/* --- Vocabularies ----------------------------------------------------------------------------------------------- */

/* `n_vocab` ids of which nothing is known but which of them end the output. */
tokentrie_status tokentrie_vocab_new(size_t n_vocab, const int32_t *end_of_generation, size_t n_end_of_generation,
                                     tokentrie_vocab *vocab);
/* The bytes of every token, one after the other, and its kind; `kinds` may be NULL: all normal. */
tokentrie_status tokentrie_vocab_from_pieces(const uint8_t *bytes, size_t n_bytes, const uint64_t *ends,
                                             const uint8_t *kinds, size_t n_vocab, tokentrie_vocab *vocab);
tokentrie_status tokentrie_vocab_size(tokentrie_vocab vocab, size_t *n_vocab);
/* End-of-generation tokens, ascending. */
tokentrie_status tokentrie_vocab_end_of_generation(tokentrie_vocab vocab, int32_t *ids, size_t capacity,
                                                   size_t *count);
/* The bytes of these tokens, one after the other; TOKENTRIE_ERROR_VOCAB where the vocabulary has no pieces. */
tokentrie_status tokentrie_vocab_bytes(tokentrie_vocab vocab, const int32_t *ids, size_t n_ids, uint8_t *bytes,
                                       size_t capacity, size_t *count);
tokentrie_status tokentrie_vocab_free(tokentrie_vocab vocab);

/* --- Tries ------------------------------------------------------------------------------------------------------ */

/* The tries of a payload in JSON. `vocab` may be 0: ids are not checked against one. */
tokentrie_status tokentrie_trie_from_json(const char *json, size_t length, tokentrie_vocab vocab,
                                          tokentrie_trie *trie);
/* One trie whose path is empty. `names` may be NULL: leaves without names, and then `name_ends` is not read. */
tokentrie_status tokentrie_trie_from_sequences(const int32_t *tokens, size_t n_tokens, const uint64_t *ends,
                                               const char *names, size_t n_names, const uint64_t *name_ends,
                                               size_t n_leaves, tokentrie_trie *trie);
/* One trie in the binary form RTKT, which has a path and no names. */
tokentrie_status tokentrie_trie_from_rtkt(const uint8_t *bytes, size_t length, tokentrie_trie *trie);
/* The first of these tries in that form. */
tokentrie_status tokentrie_trie_to_rtkt(tokentrie_trie trie, uint8_t *bytes, size_t capacity, size_t *count);
/* A .ttrie file, which is mapped. `verify` other than 0 reads and checks all of it. `path` is UTF-8. */
tokentrie_status tokentrie_trie_open(const char *path, size_t length, int32_t verify, tokentrie_trie *trie);
/* Writes the first of these tries. `vocab` may be 0. */
tokentrie_status tokentrie_trie_save(tokentrie_trie trie, const char *path, size_t length, tokentrie_vocab vocab);
/* One of the tries of a payload, by its path, as a handle of its own. */
tokentrie_status tokentrie_trie_select(tokentrie_trie trie, const char *path, size_t length, tokentrie_trie *selected);
tokentrie_status tokentrie_trie_path(tokentrie_trie trie, size_t number, char *path, size_t capacity, size_t *count);
/* The caller sets info->size. */
tokentrie_status tokentrie_trie_get_info(tokentrie_trie trie, tokentrie_trie_info *info);
/* Tokens that continue this prefix, ascending; none if it is the end of a leaf. A prefix that leads out of the trie
 * gives TOKENTRIE_ERROR_NOT_ALLOWED. */
tokentrie_status tokentrie_trie_children(tokentrie_trie trie, const int32_t *prefix, size_t n_prefix, int32_t *ids,
                                         size_t capacity, size_t *count);
/* Tokens that must follow this prefix, up to the next choice or the end of a leaf. */
tokentrie_status tokentrie_trie_forced(tokentrie_trie trie, const int32_t *prefix, size_t n_prefix, int32_t *ids,
                                       size_t capacity, size_t *count);
/* The number of the leaf with these tokens; TOKENTRIE_NONE if there is none. Leaves are numbered by their tokens. */
tokentrie_status tokentrie_trie_find(tokentrie_trie trie, const int32_t *tokens, size_t n_tokens, uint32_t *leaf);
tokentrie_status tokentrie_trie_leaf_tokens(tokentrie_trie trie, uint32_t leaf, int32_t *ids, size_t capacity,
                                            size_t *count);
/* TOKENTRIE_NONE for a leaf without a name. */
tokentrie_status tokentrie_trie_leaf_name(tokentrie_trie trie, uint32_t leaf, char *name, size_t capacity,
                                          size_t *count);
tokentrie_status tokentrie_trie_free(tokentrie_trie trie);

/* --- A cache of payloads ---------------------------------------------------------------------------------------- */

/* Least recently used; capacity 0 takes 128. */
tokentrie_status tokentrie_cache_new(size_t capacity, tokentrie_cache *cache);
/* As tokentrie_trie_from_json; a payload with the same text or the same content is not built again. */
tokentrie_status tokentrie_cache_trie(tokentrie_cache cache, const char *json, size_t length, tokentrie_vocab vocab,
                                      tokentrie_trie *trie);
tokentrie_status tokentrie_cache_get_stats(tokentrie_cache cache, tokentrie_cache_stats *stats);
tokentrie_status tokentrie_cache_clear(tokentrie_cache cache);
tokentrie_status tokentrie_cache_free(tokentrie_cache cache);

/* --- A sampler over rows of logits ------------------------------------------------------------------------------ */

/* `options` may be NULL: all zero. `end_tokens` may end a leaf; NULL with 0: none but those of the set itself. */
tokentrie_status tokentrie_sampler_new(tokentrie_trie trie, tokentrie_vocab vocab,
                                       const tokentrie_sampler_options *options, const int32_t *end_tokens,
                                       size_t n_end_tokens, tokentrie_sampler *sampler);
/* `what` becomes TOKENTRIE_ALLOWED_…; the ids ascend. */
tokentrie_status tokentrie_sampler_allowed(tokentrie_sampler sampler, int32_t *ids, size_t capacity, size_t *count,
                                           int32_t *what);
/* Sets every logit that may not come to minus infinity; the others keep their bits. */
tokentrie_status tokentrie_sampler_apply(tokentrie_sampler sampler, float *logits, size_t n_logits);
/* Chooses without accepting. */
tokentrie_status tokentrie_sampler_sample(tokentrie_sampler sampler, const float *logits, size_t n_logits,
                                          int32_t *token);
/* Chooses, accepts, and accepts what is forced after it: all of these tokens are written, one call a branch. */
tokentrie_status tokentrie_sampler_advance(tokentrie_sampler sampler, const float *logits, size_t n_logits,
                                           int32_t *ids, size_t capacity, size_t *count);
/* Accepts all tokens or none. */
tokentrie_status tokentrie_sampler_accept(tokentrie_sampler sampler, const int32_t *ids, size_t n_ids);
tokentrie_status tokentrie_sampler_rollback(tokentrie_sampler sampler, size_t n);
/* Armed again at the start of the first trie; the draws begin again. */
tokentrie_status tokentrie_sampler_reset(tokentrie_sampler sampler);
tokentrie_status tokentrie_sampler_activate(tokentrie_sampler sampler, const char *path, size_t length);
tokentrie_status tokentrie_sampler_deactivate(tokentrie_sampler sampler);
/* An independent copy. */
tokentrie_status tokentrie_sampler_clone(tokentrie_sampler sampler, tokentrie_sampler *copy);
/* Tokens that must come next. */
tokentrie_status tokentrie_sampler_forced(tokentrie_sampler sampler, int32_t *ids, size_t capacity, size_t *count);
/* Bit i % 32 of word i / 32 is set where token i may come; n_words is at least (n_vocab + 31) / 32. */
tokentrie_status tokentrie_sampler_bitmask(tokentrie_sampler sampler, uint32_t *words, size_t n_words);
/* `state` becomes TOKENTRIE_STATE_…, `depth` the tokens walked in the trie; either may be NULL. */
tokentrie_status tokentrie_sampler_state(tokentrie_sampler sampler, int32_t *state, size_t *depth);
/* Number and name of the complete leaf; TOKENTRIE_NONE before. A leaf without a name has an empty one. */
tokentrie_status tokentrie_sampler_leaf(tokentrie_sampler sampler, uint32_t *leaf, char *name, size_t capacity,
                                        size_t *count);
tokentrie_status tokentrie_sampler_free(tokentrie_sampler sampler);

/* --- Many rows -------------------------------------------------------------------------------------------------- */

/* `n_rows` rows, all at the start. A matrix of logits has n_rows rows of `stride` floats, of which the vocabulary is
 * the beginning. Every call changes all rows or none. */
tokentrie_status tokentrie_batch_new(tokentrie_trie trie, tokentrie_vocab vocab,
                                     const tokentrie_sampler_options *options, const int32_t *end_tokens,
                                     size_t n_end_tokens, size_t n_rows, tokentrie_batch *batch);
tokentrie_status tokentrie_batch_rows(tokentrie_batch batch, size_t *n_rows);
tokentrie_status tokentrie_batch_apply(tokentrie_batch batch, float *logits, size_t n_logits, size_t stride);
/* Chooses one token a row into `ids`, of which there are n_rows; accepts none. */
tokentrie_status tokentrie_batch_sample(tokentrie_batch batch, const float *logits, size_t n_logits, size_t stride,
                                        int32_t *ids, size_t capacity, size_t *count);
/* One token a row. */
tokentrie_status tokentrie_batch_accept(tokentrie_batch batch, const int32_t *ids, size_t n_ids);
/* Row i becomes a copy of what row sources[i] was; the number of rows may change. */
tokentrie_status tokentrie_batch_reorder(tokentrie_batch batch, const uint32_t *sources, size_t n_sources);
tokentrie_status tokentrie_batch_rollback(tokentrie_batch batch, size_t n);
/* n_rows masks of `words_per_row` words each. */
tokentrie_status tokentrie_batch_bitmask(tokentrie_batch batch, uint32_t *words, size_t n_words, size_t words_per_row);
tokentrie_status tokentrie_batch_state(tokentrie_batch batch, size_t row, int32_t *state, size_t *depth);
tokentrie_status tokentrie_batch_leaf(tokentrie_batch batch, size_t row, uint32_t *leaf, char *name, size_t capacity,
                                      size_t *count);
tokentrie_status tokentrie_batch_free(tokentrie_batch batch);

/* --- Inside the llama.cpp of the program ------------------------------------------------------------------------ */

/* The llama.cpp that llama_sampler_init_token_trie shall use, in place of what is found in the process. NULL: look in
 * the process again. */
tokentrie_status tokentrie_bind_llama(const tokentrie_llama_api *api);
/* A sampler for a chain of the process's llama.cpp; put it first. `json` ends with a zero and may be freed afterwards;
 * the chain owns the sampler. `vocab` may be NULL: ids are not checked. NULL on a payload that is malformed or has no
 * usable leaf, on an unknown mode, and where there is no llama.cpp that is known. */
struct llama_sampler *llama_sampler_init_token_trie(const struct llama_vocab *vocab, const char *json, int mode);

/* --- Sessions: in a library with TOKENTRIE_FEATURE_LLAMA -------------------------------------------------------- */

/* Loads a GGUF; sessions of one file share its weights. `options` may be NULL. `path` is UTF-8. */
tokentrie_status tokentrie_session_open(const char *path, size_t length, const tokentrie_session_options *options,
                                        tokentrie_session *session);
/* Takes these tokens as the prompt and computes what the cache does not hold of them. `slot` from 0 to 63 names a cache
 * that sessions of the same file and options share, one call at a time; -1 is the session's own. */
tokentrie_status tokentrie_session_prefill(tokentrie_session session, const int32_t *ids, size_t n_ids, int32_t slot,
                                           size_t *taken);
/* Generates after the prompt and what was generated before, on the calling thread. temperature 0 takes the best. */
tokentrie_status tokentrie_session_generate(tokentrie_session session, uint32_t max_tokens, float temperature,
                                            float top_p, tokentrie_token_callback callback, void *user);
/* Begins a generation on a thread of the library; tokentrie_session_next takes its tokens. */
tokentrie_status tokentrie_session_start(tokentrie_session session, uint32_t max_tokens, float temperature,
                                         float top_p);
/* The next token of a generation that was started: waits up to timeout_ms (0: not at all, -1: as long as it takes),
 * else TOKENTRIE_NONE. After the last token is_done becomes 1, token -1, no text, once; if the generation failed, its
 * status is returned then. A text buffer that is too small leaves the token for the next call; 256 bytes are enough
 * for most, TOKENTRIE_ERROR_BUFFER says what is needed. */
tokentrie_status tokentrie_session_next(tokentrie_session session, int32_t timeout_ms, int32_t *token, char *text,
                                        size_t capacity, size_t *count, int32_t *is_done);
/* Ends a generation or a prefill as soon as the forward pass that runs is over; nothing if none runs. From any thread,
 * and from inside the callback. */
tokentrie_status tokentrie_session_cancel(tokentrie_session session);
/* Frees the session. TOKENTRIE_ERROR_BUSY while a generation runs: cancel it, wait for is_done, and close again. */
tokentrie_status tokentrie_session_close(tokentrie_session session);
/* The tries that the next generations follow, in place of those before: armed at the start of each generation, until
 * cleared. A generation that fails clears them. If the payload is refused, those before are gone too, and the next
 * generation is refused unless they are set or cleared before. */
tokentrie_status tokentrie_session_set_token_trie(tokentrie_session session, const char *json, size_t length,
                                                  int32_t mode);
tokentrie_status tokentrie_session_set_trie(tokentrie_session session, tokentrie_trie trie, int32_t mode);
/* As often as you like. */
tokentrie_status tokentrie_session_clear_token_trie(tokentrie_session session);
/* The caller sets info->size. */
tokentrie_status tokentrie_session_get_info(tokentrie_session session, tokentrie_session_info *info);
/* The leaf that the last generation completed; TOKENTRIE_NONE if none. */
tokentrie_status tokentrie_session_leaf(tokentrie_session session, uint32_t *leaf, char *name, size_t capacity,
                                        size_t *count);
tokentrie_status tokentrie_session_vocab(tokentrie_session session, tokentrie_vocab *vocab);
/* `add_special`: with the tokens that begin a text; `parse_special`: names of control tokens become those tokens. */
tokentrie_status tokentrie_session_tokenize(tokentrie_session session, const char *text, size_t length,
                                            int32_t add_special, int32_t parse_special, int32_t *ids, size_t capacity,
                                            size_t *count);
/* A trie of texts in the tokens of this model, named by themselves: each follows `prefix`, which the prompt ends with,
 * and ends with `suffix`; both may be empty. */
tokentrie_status tokentrie_session_texts(tokentrie_session session, const char *texts, size_t n_bytes,
                                         const uint64_t *ends, size_t n_texts, const char *prefix, size_t n_prefix,
                                         const char *suffix, size_t n_suffix, tokentrie_trie *trie);
/* The probability of each of these texts as the continuation of the prompt, in their order; together they are 1. */
tokentrie_status tokentrie_session_choose(tokentrie_session session, const char *prompt, size_t n_prompt,
                                          const char *texts, size_t n_bytes, const uint64_t *ends, size_t n_texts,
                                          double *probabilities, size_t capacity, tokentrie_choice *choice);
/* The same for a prompt of tokens and the leaves of a trie, in their order. */
tokentrie_status tokentrie_session_choose_leaves(tokentrie_session session, const int32_t *ids, size_t n_ids,
                                                 tokentrie_trie trie, double *probabilities, size_t capacity,
                                                 tokentrie_choice *choice);

/* --- The same under the names that one agent runtime looks for -------------------------------------------------- */

/* The handle is the number of the session. NULL, or -1, on errors; tokentrie_last_error() says why. */
void *eliza_inference_llm_stream_open(const char *model_path, int32_t context_tokens, int32_t threads,
                                      int32_t gpu_layers);
/* 1: sessions work. */
int32_t eliza_inference_llm_stream_supported(void);
/* The number of tokens taken, or -1. */
int32_t eliza_inference_llm_stream_prefill(void *handle, const int32_t *ids, int32_t n_ids, int32_t slot);
/* 0, or -1. */
int32_t eliza_inference_llm_stream_generate(void *handle, int32_t max_new_tokens, float temperature, float top_p,
                                            tokentrie_token_callback callback, void *user);
/* The pull form: waits for at least one step. 0: there is more, 1: that was the last, negative: an error, and a
 * sentence in *out_error if that is not NULL, for eliza_inference_free_string. `text` ends with a zero. */
int32_t eliza_inference_llm_stream_next(void *handle, int32_t *tokens, size_t tokens_capacity, size_t *n_tokens,
                                        char *text, size_t text_capacity, int32_t *drafted, int32_t *accepted,
                                        char **out_error);
void eliza_inference_llm_stream_cancel(void *handle);
void eliza_inference_llm_stream_close(void *handle);
int32_t eliza_inference_set_token_trie(void *handle, const char *json, size_t length, int32_t mode);
int32_t eliza_inference_clear_token_trie(void *handle);
void eliza_inference_free_string(char *text);

#ifdef __cplusplus
}
#endif

#endif /* TOKENTRIE_H */
