/* tokentrie: a language model says only what is allowed. C ABI; docs/c.md tells how to use it.
 *
 * Made by cbindgen from crates/tokentrie-c: do not edit.
 *
 * Every function returns a status unless it says otherwise: TOKENTRIE_OK, a positive status that is not an error, or
 * a negative error. tokentrie_last_error() says what was wrong, where, and with which value.
 *
 * Handles are numbers below 2^53; 0 is none. A handle that was freed, or that is of another kind, is refused with
 * TOKENTRIE_ERROR_HANDLE. Every handle is freed once, with the function of its kind; what was made from it stays
 * usable. Handles may go from thread to thread. Vocabularies, tries and caches may be used by several threads at once;
 * a sampler or batch that another thread is using is refused with TOKENTRIE_ERROR_BUSY. A session does one thing at a
 * time, and refuses what comes meanwhile.
 *
 * Strings in are bytes with a length, without a zero at the end. Results go into buffers of the caller: `capacity` is
 * their size, `*count` becomes what there is. A buffer that is too small gives TOKENTRIE_ERROR_BUFFER, `*count` says
 * what it needs, and nothing was written or changed. A buffer may be NULL with capacity 0, to ask for the size.
 * Strings out have no zero at the end.
 *
 * Several items in one buffer come with their ends: item i is what lies between ends[i - 1] (0 for the first) and
 * ends[i]. Ends ascend, and the last one is the length of the buffer, which is given too.
 *
 * Token ids are int32_t from 0 on. Structures begin with their own size, which the caller sets: fields that it does
 * not know count as 0.
 *
 * Functions tokentrie_session_... and tokentrie_chat_... are in libraries with llama.cpp alone: see
 * tokentrie_features().
 */

#ifndef TOKENTRIE_H
#define TOKENTRIE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * Version of this header. A library fits if tokentrie_abi_version() has the same upper 16 bits and lower 16 bits that
 * are no smaller.
 */
#define TOKENTRIE_ABI_VERSION 65536

/**
 * The most bytes of a payload in JSON or RTKT.
 */
#define TOKENTRIE_MAX_PAYLOAD 268435456

/**
 * A bit of tokentrie_features(): the library has sessions.
 */
#define TOKENTRIE_FEATURE_LLAMA 1

/**
 * A bit of tokentrie_features(): the library was compiled for more than x86-64-v3 or plain aarch64, such as for the
 * processor of the machine that built it. Others may not run it.
 */
#define TOKENTRIE_FEATURE_THIS_CPU 2

/**
 * A mode: the highest logit, ties to the lowest id.
 */
#define TOKENTRIE_MODE_GREEDY 0

/**
 * A mode: temperature, top-k, top-p, min-p and a seeded draw over the allowed tokens.
 */
#define TOKENTRIE_MODE_SAMPLED 1

/**
 * After a complete leaf anything may follow.
 */
#define TOKENTRIE_AFTER_FREE 0

/**
 * After a complete leaf only end of generation may follow; a session ends there.
 */
#define TOKENTRIE_AFTER_STOP 1

/**
 * A state: the constraint is active.
 */
#define TOKENTRIE_STATE_ACTIVE 0

/**
 * A state: the leaf is known.
 */
#define TOKENTRIE_STATE_COMPLETE 1

/**
 * A state: switched off until a path is activated.
 */
#define TOKENTRIE_STATE_IDLE 2

/**
 * A state: switched off by something that was not allowed.
 */
#define TOKENTRIE_STATE_OFF 3

/**
 * The listed tokens alone may come.
 */
#define TOKENTRIE_ALLOWED_ONLY 0

/**
 * Everything may come; the listed tokens go on, all others end the leaf that ends here.
 */
#define TOKENTRIE_ALLOWED_OPEN 1

/**
 * Everything may come; none is listed.
 */
#define TOKENTRIE_ALLOWED_ALL 2

/**
 * Contents of a forward pass of an engine: tokens of every call that runs.
 */
#define TOKENTRIE_BATCHING_FREE 0

/**
 * Tokens of one call, which gets the same logits whatever runs beside it, bit for bit.
 */
#define TOKENTRIE_BATCHING_FIXED 1

/**
 * A kind of token: text.
 */
#define TOKENTRIE_TOKEN_NORMAL 0

/**
 * A kind of token: control, no text.
 */
#define TOKENTRIE_TOKEN_CONTROL 1

/**
 * A kind of token: it ends the output.
 */
#define TOKENTRIE_TOKEN_END_OF_GENERATION 2

/**
 * Why a generation ended: none has ended yet.
 */
#define TOKENTRIE_FINISH_NONE 0

/**
 * The span is over: its value is complete, and nothing shall follow it.
 */
#define TOKENTRIE_FINISH_SPAN 1

/**
 * The model ended its output.
 */
#define TOKENTRIE_FINISH_END_OF_GENERATION 2

/**
 * The limit was reached.
 */
#define TOKENTRIE_FINISH_MAX_TOKENS 3

/**
 * The context was full.
 */
#define TOKENTRIE_FINISH_CONTEXT_FULL 4

/**
 * A finish: tokentrie_session_cancel was called.
 */
#define TOKENTRIE_FINISH_CANCELLED 5

/**
 * It failed: the status of the call says how.
 */
#define TOKENTRIE_FINISH_ERROR 6

/**
 * The time of its request was over.
 */
#define TOKENTRIE_FINISH_TIMED_OUT 7

/**
 * A stop text of its request was written.
 */
#define TOKENTRIE_FINISH_STOP_TEXT 8

/**
 * The reply of a chat calls tools.
 */
#define TOKENTRIE_FINISH_TOOL_CALLS 9

/**
 * Opaque sampler of llama.cpp.
 */
typedef struct llama_sampler llama_sampler;

/**
 * llama.cpp's table of callbacks.
 */
typedef struct llama_sampler_i llama_sampler_i;

/**
 * Opaque vocabulary of llama.cpp.
 */
typedef struct llama_vocab llama_vocab;

/**
 * Status returned by a function: TOKENTRIE_OK, a positive status that is not an error, or a negative error.
 */
typedef int32_t tokentrie_status;

/**
 * A handle: a vocabulary. Handles are below 2^53; 0 is none.
 */
typedef uint64_t tokentrie_vocab;

/**
 * A handle: a cache of payloads.
 */
typedef uint64_t tokentrie_cache;

/**
 * A handle: one or several tries, by path.
 */
typedef uint64_t tokentrie_trie;

/**
 * Properties of a trie.
 */
typedef struct tokentrie_trie_info {
  /**
   * Size of this structure, as sizeof.
   */
  uint32_t size;
  /**
   * Number of tries, by path. What follows is of the first.
   */
  uint32_t tries;
  /**
   * Number of its leaves.
   */
  uint64_t leaves;
  /**
   * Nodes, with the root.
   */
  uint64_t nodes;
  /**
   * Bytes of memory held.
   */
  uint64_t bytes;
  /**
   * Largest token id used.
   */
  int32_t max_token;
  /**
   * Tokens of the longest leaf.
   */
  uint32_t max_depth;
  /**
   * Leaves of the payload that were left out: they have no tokens.
   */
  uint64_t empty_leaves;
  /**
   * Leaves of the payload that were left out: the vocabulary does not have their ids.
   */
  uint64_t outside_vocabulary;
} tokentrie_trie_info;

/**
 * Statistics of a cache.
 */
typedef struct tokentrie_cache_stats {
  /**
   * Size of this structure, as sizeof.
   */
  uint32_t size;
  /**
   * Payloads that can be held.
   */
  uint32_t capacity;
  /**
   * Payloads that are held.
   */
  uint64_t held;
  /**
   * Found by the text.
   */
  uint64_t hits;
  /**
   * Other text with the same content.
   */
  uint64_t content_hits;
  /**
   * Number of payloads built.
   */
  uint64_t misses;
  /**
   * Texts that had to leave.
   */
  uint64_t evictions;
} tokentrie_cache_stats;

/**
 * A handle: a constraint of any kind. It will do wherever a tokentrie_trie is followed.
 */
typedef uint64_t tokentrie_constraint;

/**
 * Options of a choice by a sampler or a batch. All zero is greedy, with free text after the leaf.
 */
typedef struct tokentrie_sampler_options {
  /**
   * Size of this structure, as sizeof.
   */
  uint32_t size;
  /**
   * Mode of the choice: TOKENTRIE_MODE_…
   */
  int32_t mode;
  /**
   * Text after a leaf: TOKENTRIE_AFTER_…
   */
  int32_t after;
  /**
   * Number of candidates kept; 0: all.
   */
  uint32_t top_k;
  /**
   * 0 takes the highest; not used in greedy mode.
   */
  float temperature;
  /**
   * 0 counts as 1: all.
   */
  float top_p;
  /**
   * Minimum probability relative to the best; 0: all.
   */
  float min_p;
  /**
   * Seed of the draw.
   */
  uint32_t seed;
  /**
   * 0: the seed comes from the operating system.
   */
  uint32_t has_seed;
  /**
   * 0 counts as 1: all.
   */
  float typical_p;
  /**
   * 0 counts as 1: no penalty. In greedy mode too, as the next three.
   */
  float repeat_penalty;
  /**
   * Penalty on written tokens; 0: none.
   */
  float presence_penalty;
  /**
   * Penalty per occurrence; 0: none.
   */
  float frequency_penalty;
  /**
   * Number of the last accepted tokens that penalties count. -1: all; 0: 64.
   */
  int32_t penalty_last_n;
} tokentrie_sampler_options;

/**
 * A handle: a sampler over rows of logits.
 */
typedef uint64_t tokentrie_sampler;

/**
 * A handle: many rows.
 */
typedef uint64_t tokentrie_batch;

/**
 * The llama.cpp of a program. All of it belongs to one library, which stays loaded.
 */
typedef struct tokentrie_llama_api {
  /**
   * Size of this structure, as sizeof.
   */
  uint32_t size;
  /**
   * Fields of llama_sampler_i in that library: sizeof(struct llama_sampler_i) / sizeof(void *). Unknown numbers are
   * refused.
   */
  uint32_t callback_fields;
  /**
   * Address of llama_sampler_init there.
   */
  struct llama_sampler *(*sampler_init)(struct llama_sampler_i *iface, void *ctx);
  /**
   * llama_vocab_n_tokens; NULL: vocabularies are not looked at.
   */
  int32_t (*vocab_n_tokens)(const struct llama_vocab *vocab);
  /**
   * llama_vocab_is_eog; NULL: end-of-generation tokens are not known.
   */
  bool (*vocab_is_eog)(const struct llama_vocab *vocab, int32_t token);
} tokentrie_llama_api;

/**
 * Options for opening a model. All zero takes the defaults.
 */
typedef struct tokentrie_session_options {
  /**
   * Size of this structure, as sizeof.
   */
  uint32_t size;
  /**
   * Tokens of context. 0: 4096, or what the model was trained on if that is less.
   */
  uint32_t n_ctx;
  /**
   * The most tokens in one forward pass. 0: 512.
   */
  uint32_t n_batch;
  /**
   * 0: as many as pay off.
   */
  uint32_t n_threads;
  /**
   * Layers on a graphics card.
   */
  uint32_t n_gpu_layers;
  /**
   * TOKENTRIE_AFTER_FREE: text goes on after the leaf; TOKENTRIE_AFTER_STOP: the generation ends with it.
   */
  int32_t after;
  /**
   * Seed of the draws.
   */
  uint32_t seed;
  /**
   * 0: the seed comes from the operating system.
   */
  uint32_t has_seed;
  /**
   * Calls of sessions of one file and the same options that run at once, up to 128. 0: a context for each session.
   */
  uint32_t slots;
  /**
   * With slots: calls that may wait for one; one more gives TOKENTRIE_ERROR_BUSY at once. 0: 1024.
   */
  uint32_t max_queue;
  /**
   * Contents of a forward pass: TOKENTRIE_BATCHING_…
   */
  int32_t batching;
} tokentrie_session_options;

/**
 * A handle: a model with a prompt.
 */
typedef uint64_t tokentrie_session;

/**
 * Called for every token, in order, on the thread that generates. `text` is UTF-8 with a zero at the end: whole
 * characters that the token completes, often none; it lives until the callback returns. The last call has is_done 1,
 * token -1 and empty text. It comes exactly once for each call of a function that generates, also where that fails
 * before it begins, and after cancel; the generation is over by then, and the session free for another. In the calls
 * before, what would change the session gives TOKENTRIE_ERROR_BUSY; _cancel, _get_info, _result, _vocab and
 * _tokenize work. It must return: no exception, no longjmp.
 */
typedef void (*tokentrie_token_callback)(int32_t token, const char *text, int32_t is_done, void *user);

/**
 * State of a session.
 */
typedef struct tokentrie_session_info {
  /**
   * Size of this structure, as sizeof.
   */
  uint32_t size;
  /**
   * 1 while a generation runs.
   */
  int32_t generating;
  /**
   * 1 while a trie is set.
   */
  int32_t has_trie;
  /**
   * State of the trie in the last generation: TOKENTRIE_STATE_…
   */
  int32_t state;
  /**
   * Reason for the end of the last generation: TOKENTRIE_FINISH_…
   */
  int32_t finish;
  /**
   * Slot of the last prefill, or -1.
   */
  int32_t slot;
  /**
   * Context size in tokens.
   */
  uint32_t n_ctx;
  /**
   * Tokens of the vocabulary.
   */
  uint32_t n_vocab;
  /**
   * Tokens that the next generation begins after.
   */
  uint64_t prompt_tokens;
  /**
   * Tokens of the last generation.
   */
  uint64_t tokens;
  /**
   * Number of forced tokens among them.
   */
  uint64_t forced_tokens;
  /**
   * Number of those that were chosen among several, and of a token that only ended the output.
   */
  uint64_t sampled_tokens;
  /**
   * Number of its forward passes.
   */
  uint64_t forward_passes;
  /**
   * Tokens of it that needed none of their own.
   */
  uint64_t forward_passes_saved;
  /**
   * Tokens of the prompt that were in the cache already.
   */
  uint64_t prompt_tokens_reused;
  /**
   * Times that no legal token had a usable logit.
   */
  uint64_t starved;
  /**
   * Its duration in seconds.
   */
  double seconds;
  /**
   * Leaves without tokens that were left out of what was set or asked for last.
   */
  uint64_t empty_leaves;
  /**
   * Leaves that were left out of it because the vocabulary does not have their ids.
   */
  uint64_t outside_vocabulary;
} tokentrie_session_info;

/**
 * Load and statistics of the engine that sessions of a file share.
 */
typedef struct tokentrie_engine_info {
  /**
   * Size of this structure, as sizeof.
   */
  uint32_t size;
  /**
   * Calls that may run at once.
   */
  uint32_t slots;
  /**
   * Number of running calls.
   */
  uint64_t running;
  /**
   * Number of waiting calls.
   */
  uint64_t queued;
  /**
   * Calls that were begun.
   */
  uint64_t calls;
  /**
   * Number of forward passes.
   */
  uint64_t passes;
  /**
   * Number of tokens in them.
   */
  uint64_t tokens;
  /**
   * Tokens that were not decoded, because another call begins with them.
   */
  uint64_t tokens_reused;
  /**
   * Cells of the cache that hold something, counted once for each sequence.
   */
  uint64_t cells;
  /**
   * Forward passes that failed.
   */
  uint64_t failed_passes;
  /**
   * Seconds that llama.cpp took for them.
   */
  double decode_seconds;
  /**
   * Seconds that all else in them took: what is decoded next, constraints, choosing tokens.
   */
  double own_seconds;
} tokentrie_engine_info;

/**
 * The call has succeeded.
 */
#define TOKENTRIE_OK 0

/**
 * There is none (yet): no leaf is complete, no token came in time.
 */
#define TOKENTRIE_NONE 1

/**
 * 0, freed, or a handle of another kind.
 */
#define TOKENTRIE_ERROR_HANDLE -1

/**
 * NULL where none may be, a number out of range, lengths that contradict each other.
 */
#define TOKENTRIE_ERROR_ARGUMENT -2

/**
 * A buffer is too small: the count says what is needed.
 */
#define TOKENTRIE_ERROR_BUFFER -3

/**
 * Bytes that are no UTF-8.
 */
#define TOKENTRIE_ERROR_TEXT -4

/**
 * A payload (JSON or RTKT) that is malformed or has no usable leaf.
 */
#define TOKENTRIE_ERROR_PAYLOAD -5

/**
 * Sequences or texts that make no trie.
 */
#define TOKENTRIE_ERROR_SET -6

/**
 * A .ttrie file that cannot be read or written.
 */
#define TOKENTRIE_ERROR_FILE -7

/**
 * A token id that the vocabulary does not have, or a set for another vocabulary.
 */
#define TOKENTRIE_ERROR_VOCAB -8

/**
 * A token that may not come here, or a request that does not fit the state.
 */
#define TOKENTRIE_ERROR_NOT_ALLOWED -9

/**
 * A row of logits or a mask that is shorter than the vocabulary.
 */
#define TOKENTRIE_ERROR_ROW -10

/**
 * A set from a damaged file: nothing may come.
 */
#define TOKENTRIE_ERROR_DAMAGED -11

/**
 * In use by another call: a generation that runs, another thread, or the callback that is calling.
 */
#define TOKENTRIE_ERROR_BUSY -12

/**
 * No llama.cpp in the process, one whose table of callbacks is unknown, or a library without llama.cpp.
 */
#define TOKENTRIE_ERROR_LLAMA -13

/**
 * A model that cannot be loaded, a prompt that does not fit it, or a forward pass that failed.
 */
#define TOKENTRIE_ERROR_MODEL -14

/**
 * The call was ended by tokentrie_session_cancel.
 */
#define TOKENTRIE_ERROR_CANCELLED -15

/**
 * Larger than a documented limit.
 */
#define TOKENTRIE_ERROR_LIMIT -16

/**
 * A fault of the library; what was being changed is closed.
 */
#define TOKENTRIE_ERROR_PANIC -17

/**
 * A spec that cannot be read or used: the message has the place.
 */
#define TOKENTRIE_ERROR_SPEC -18

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Version of the library: compare with TOKENTRIE_ABI_VERSION.
 */
uint32_t tokentrie_abi_version(void);

/**
 * Returns the features of this build: bits TOKENTRIE_FEATURE_…
 */
uint32_t tokentrie_features(void);

/**
 * Returns the message of the last call that failed on this thread; "" if there was none. UTF-8 with a zero at the end,
 * valid until the next call that fails on this thread.
 */
const char *tokentrie_last_error(void);

/**
 * The name of a status, such as "TOKENTRIE_ERROR_HANDLE"; "unknown status" for others.
 */
const char *tokentrie_status_name(tokentrie_status status);

/**
 * `n_vocab` ids. Nothing is known of them but which ones end the output.
 */
tokentrie_status tokentrie_vocab_new(size_t n_vocab,
                                     const int32_t *end_of_generation,
                                     size_t n_end_of_generation,
                                     tokentrie_vocab *vocab);

/**
 * The bytes of every token, one after the other, and its kind, TOKENTRIE_TOKEN_…; `kinds` may be NULL: all normal.
 */
tokentrie_status tokentrie_vocab_from_pieces(const uint8_t *bytes,
                                             size_t n_bytes,
                                             const uint64_t *ends,
                                             const uint8_t *kinds,
                                             size_t n_vocab,
                                             tokentrie_vocab *vocab);

/**
 * Returns the number of ids.
 */
tokentrie_status tokentrie_vocab_size(tokentrie_vocab vocab, size_t *n_vocab);

/**
 * Returns the end-of-generation tokens, ascending.
 */
tokentrie_status tokentrie_vocab_end_of_generation(tokentrie_vocab vocab,
                                                   int32_t *ids,
                                                   size_t capacity,
                                                   size_t *count);

/**
 * The bytes of these tokens, one after the other; TOKENTRIE_ERROR_VOCAB where the vocabulary has none.
 */
tokentrie_status tokentrie_vocab_bytes(tokentrie_vocab vocab,
                                       const int32_t *ids,
                                       size_t n_ids,
                                       uint8_t *bytes,
                                       size_t capacity,
                                       size_t *count);

/**
 * Ends the handle; what was made with it stays.
 */
tokentrie_status tokentrie_vocab_free(tokentrie_vocab vocab);

/**
 * The tries of a payload in JSON. `vocab` may be 0: ids are not checked against one. `cache` may be 0; one keeps what
 * it read, and a payload with the same text or the same content is not built again.
 */
tokentrie_status tokentrie_trie_from_json(const char *json,
                                          size_t length,
                                          tokentrie_vocab vocab,
                                          tokentrie_cache cache,
                                          tokentrie_trie *trie);

/**
 * One trie whose path is empty. `names` may be NULL: leaves without names; `name_ends` is not read then.
 */
tokentrie_status tokentrie_trie_from_sequences(const int32_t *tokens,
                                               size_t n_tokens,
                                               const uint64_t *ends,
                                               const char *names,
                                               size_t n_names,
                                               const uint64_t *name_ends,
                                               size_t n_leaves,
                                               tokentrie_trie *trie);

/**
 * One trie in the binary form RTKT, which has a path and no names.
 */
tokentrie_status tokentrie_trie_from_rtkt(const uint8_t *bytes, size_t length, tokentrie_trie *trie);

/**
 * The first of these tries in that form.
 */
tokentrie_status tokentrie_trie_to_rtkt(tokentrie_trie trie, uint8_t *bytes, size_t capacity, size_t *count);

/**
 * A .ttrie file, which is mapped. `verify` other than 0 reads and checks all of it. `path` is UTF-8.
 */
tokentrie_status tokentrie_trie_open(const char *path, size_t length, int32_t verify, tokentrie_trie *trie);

/**
 * Writes the first of these tries as a .ttrie file. `vocab` may be 0.
 */
tokentrie_status tokentrie_trie_save(tokentrie_trie trie, const char *path, size_t length, tokentrie_vocab vocab);

/**
 * One of the tries of a payload, by its path, as a handle of its own.
 */
tokentrie_status tokentrie_trie_select(tokentrie_trie trie,
                                       const char *path,
                                       size_t length,
                                       tokentrie_trie *selected);

/**
 * The path of one of these tries, by its number from 0.
 */
tokentrie_status tokentrie_trie_path(tokentrie_trie trie,
                                     size_t number,
                                     char *path,
                                     size_t capacity,
                                     size_t *count);

/**
 * Returns the properties of these tries. The caller sets info->size.
 */
tokentrie_status tokentrie_trie_get_info(tokentrie_trie trie, struct tokentrie_trie_info *info);

/**
 * Tokens that continue this prefix, ascending; none at the end of a leaf that is not a prefix of another. A prefix
 * that leads out of the trie gives TOKENTRIE_ERROR_NOT_ALLOWED.
 */
tokentrie_status tokentrie_trie_children(tokentrie_trie trie,
                                         const int32_t *prefix,
                                         size_t n_prefix,
                                         int32_t *ids,
                                         size_t capacity,
                                         size_t *count);

/**
 * Tokens that must follow this prefix, up to the next choice or the end of a leaf.
 */
tokentrie_status tokentrie_trie_forced(tokentrie_trie trie,
                                       const int32_t *prefix,
                                       size_t n_prefix,
                                       int32_t *ids,
                                       size_t capacity,
                                       size_t *count);

/**
 * The number of the leaf with these tokens; TOKENTRIE_NONE if there is none. Leaves are numbered in the order of their
 * tokens.
 */
tokentrie_status tokentrie_trie_find(tokentrie_trie trie,
                                     const int32_t *tokens,
                                     size_t n_tokens,
                                     uint32_t *leaf);

/**
 * The tokens of a leaf.
 */
tokentrie_status tokentrie_trie_leaf_tokens(tokentrie_trie trie,
                                            uint32_t leaf,
                                            int32_t *ids,
                                            size_t capacity,
                                            size_t *count);

/**
 * The name of a leaf; TOKENTRIE_NONE for one without.
 */
tokentrie_status tokentrie_trie_leaf_name(tokentrie_trie trie,
                                          uint32_t leaf,
                                          char *name,
                                          size_t capacity,
                                          size_t *count);

/**
 * Ends the handle; samplers over these tries stay.
 */
tokentrie_status tokentrie_trie_free(tokentrie_trie trie);

/**
 * An empty cache, least recently used out first; capacity 0 takes 128.
 */
tokentrie_status tokentrie_cache_new(size_t capacity, tokentrie_cache *cache);

/**
 * Returns the statistics of a cache. The caller sets stats->size.
 */
tokentrie_status tokentrie_cache_get_stats(tokentrie_cache cache, struct tokentrie_cache_stats *stats);

/**
 * Forgets all payloads; tries that were made stay.
 */
tokentrie_status tokentrie_cache_clear(tokentrie_cache cache);

/**
 * Ends the handle; tries that were made stay.
 */
tokentrie_status tokentrie_cache_free(tokentrie_cache cache);

/**
 * A constraint of any kind over a vocabulary, from a spec: `{"regex": "[0-9]+"}`, `{"choice": ["yes", "no"]}` and all
 * others of docs/specs.md. Wherever a trie is followed its handle will do: samplers, batches, sessions. Rules need a
 * vocabulary with the bytes of its tokens, texts one of a model. Files and names are not looked up. The sentence of an
 * error says which part is wrong, as `$.then[1].integer.min`: mostly TOKENTRIE_ERROR_SPEC, but TOKENTRIE_ERROR_VOCAB
 * for what this vocabulary cannot do.
 */
tokentrie_status tokentrie_constraint_from_json(const char *json,
                                                size_t length,
                                                tokentrie_vocab vocab,
                                                tokentrie_constraint *constraint);

/**
 * The spec in its canonical form: one text for one content.
 */
tokentrie_status tokentrie_constraint_json(tokentrie_constraint constraint,
                                           char *json,
                                           size_t capacity,
                                           size_t *count);

/**
 * All values of a constraint that has few, as a trie. Texts that a rule allows are tokenised as a list of texts is;
 * the leaves have their names. Where a token crosses the boundary between `prefix` and a text of a choice, the trie
 * begins before that token, and sessions take it off the prompt. TOKENTRIE_ERROR_SPEC where the values have no end or
 * are too many to list.
 */
tokentrie_status tokentrie_constraint_trie(tokentrie_constraint constraint,
                                           tokentrie_trie *trie);

/**
 * The texts of a constraint that is a list of texts or a rule with few, as a JSON array, in the order of a list;
 * TOKENTRIE_NONE for every other kind. TOKENTRIE_ERROR_SPEC where they have no end or are too many to list.
 */
tokentrie_status tokentrie_constraint_texts(tokentrie_constraint constraint,
                                            char *json,
                                            size_t capacity,
                                            size_t *count);

/**
 * Returns the warnings about a constraint, as a JSON array of sentences: unused rules of a grammar, keywords of a
 * schema that `lenient` leaves out, leaves of a payload that this vocabulary cannot spell.
 */
tokentrie_status tokentrie_constraint_warnings(tokentrie_constraint constraint,
                                               char *json,
                                               size_t capacity,
                                               size_t *count);

/**
 * Ends the handle; samplers, batches and sessions that follow it go on.
 */
tokentrie_status tokentrie_constraint_free(tokentrie_constraint constraint);

/**
 * A sampler armed at the start of the first trie. `options` may be NULL: all zero. `end_tokens` may end a leaf; none:
 * those of the set itself, if it has any.
 */
tokentrie_status tokentrie_sampler_new(tokentrie_trie trie,
                                       tokentrie_vocab vocab,
                                       const struct tokentrie_sampler_options *options,
                                       const int32_t *end_tokens,
                                       size_t n_end_tokens,
                                       tokentrie_sampler *sampler);

/**
 * Returns the allowed tokens: `what` becomes TOKENTRIE_ALLOWED_…; the ids ascend.
 */
tokentrie_status tokentrie_sampler_allowed(tokentrie_sampler sampler,
                                           int32_t *ids,
                                           size_t capacity,
                                           size_t *count,
                                           int32_t *what);

/**
 * Sets every logit that may not come to minus infinity; the others keep their bits.
 */
tokentrie_status tokentrie_sampler_apply(tokentrie_sampler sampler, float *logits, size_t n_logits);

/**
 * Chooses the next token without accepting it.
 */
tokentrie_status tokentrie_sampler_sample(tokentrie_sampler sampler,
                                          const float *logits,
                                          size_t n_logits,
                                          int32_t *token);

/**
 * Chooses, accepts, and accepts what is forced after it: all of these tokens are written, one call a branch.
 */
tokentrie_status tokentrie_sampler_advance(tokentrie_sampler sampler,
                                           const float *logits,
                                           size_t n_logits,
                                           int32_t *ids,
                                           size_t capacity,
                                           size_t *count);

/**
 * Accepts all tokens or none.
 */
tokentrie_status tokentrie_sampler_accept(tokentrie_sampler sampler, const int32_t *ids, size_t n_ids);

/**
 * Takes back the last `n` accepted tokens.
 */
tokentrie_status tokentrie_sampler_rollback(tokentrie_sampler sampler, size_t n);

/**
 * Armed again at the start of the first trie; the draws begin again.
 */
tokentrie_status tokentrie_sampler_reset(tokentrie_sampler sampler);

/**
 * Armed at the start of the trie with this path.
 */
tokentrie_status tokentrie_sampler_activate(tokentrie_sampler sampler, const char *path, size_t length);

/**
 * Stops constraining until a path is activated or the sampler is reset.
 */
tokentrie_status tokentrie_sampler_deactivate(tokentrie_sampler sampler);

/**
 * An independent copy, at the same place.
 */
tokentrie_status tokentrie_sampler_clone(tokentrie_sampler sampler, tokentrie_sampler *copy);

/**
 * Tokens that must come next whatever the model says.
 */
tokentrie_status tokentrie_sampler_forced(tokentrie_sampler sampler,
                                          int32_t *ids,
                                          size_t capacity,
                                          size_t *count);

/**
 * Bit i % 32 of word i / 32 is set where token i may come; n_words is at least (n_vocab + 31) / 32.
 */
tokentrie_status tokentrie_sampler_bitmask(tokentrie_sampler sampler, uint32_t *words, size_t n_words);

/**
 * `state` becomes TOKENTRIE_STATE_…, `depth` the tokens walked in the trie; either may be NULL.
 */
tokentrie_status tokentrie_sampler_state(tokentrie_sampler sampler, int32_t *state, size_t *depth);

/**
 * Number and name of the complete leaf; TOKENTRIE_NONE before. A leaf without a name has an empty one.
 */
tokentrie_status tokentrie_sampler_leaf(tokentrie_sampler sampler,
                                        uint32_t *leaf,
                                        char *name,
                                        size_t capacity,
                                        size_t *count);

/**
 * Returns the filled fields of a form so far, by name, as JSON: `{"action": "STOP"}`. TOKENTRIE_NONE if nothing was.
 */
tokentrie_status tokentrie_sampler_values(tokentrie_sampler sampler,
                                          char *json,
                                          size_t capacity,
                                          size_t *count);

/**
 * Frees the handle of a sampler.
 */
tokentrie_status tokentrie_sampler_free(tokentrie_sampler sampler);

/**
 * `n_rows` rows, all at the start; more than one thread works on large ones. Every call changes all rows or none. A
 * matrix of logits has n_rows rows of `stride` floats, which begin with the vocabulary's.
 */
tokentrie_status tokentrie_batch_new(tokentrie_trie trie,
                                     tokentrie_vocab vocab,
                                     const struct tokentrie_sampler_options *options,
                                     const int32_t *end_tokens,
                                     size_t n_end_tokens,
                                     size_t n_rows,
                                     tokentrie_batch *batch);

/**
 * Returns the number of rows.
 */
tokentrie_status tokentrie_batch_rows(tokentrie_batch batch, size_t *n_rows);

/**
 * Sets every logit that may not come to minus infinity.
 */
tokentrie_status tokentrie_batch_apply(tokentrie_batch batch, float *logits, size_t n_logits, size_t stride);

/**
 * Chooses one token a row; accepts none.
 */
tokentrie_status tokentrie_batch_select(tokentrie_batch batch,
                                        const float *logits,
                                        size_t n_logits,
                                        size_t stride,
                                        int32_t *ids,
                                        size_t capacity,
                                        size_t *count);

/**
 * Accepts one token a row.
 */
tokentrie_status tokentrie_batch_accept(tokentrie_batch batch, const int32_t *ids, size_t n_ids);

/**
 * Row i becomes a copy of what row sources[i] was; the number of rows may change.
 */
tokentrie_status tokentrie_batch_reorder(tokentrie_batch batch, const uint32_t *sources, size_t n_sources);

/**
 * Takes back the last `n` tokens of every row.
 */
tokentrie_status tokentrie_batch_rollback(tokentrie_batch batch, size_t n);

/**
 * A mask a row, as tokentrie_sampler_bitmask, each of `stride` words.
 */
tokentrie_status tokentrie_batch_bitmask(tokentrie_batch batch, uint32_t *words, size_t n_words, size_t stride);

/**
 * `state` becomes TOKENTRIE_STATE_…, `depth` the tokens that a row has walked; either may be NULL.
 */
tokentrie_status tokentrie_batch_state(tokentrie_batch batch, size_t row, int32_t *state, size_t *depth);

/**
 * As tokentrie_sampler_leaf, of a row.
 */
tokentrie_status tokentrie_batch_leaf(tokentrie_batch batch,
                                      size_t row,
                                      uint32_t *leaf,
                                      char *name,
                                      size_t capacity,
                                      size_t *count);

/**
 * Frees the handle of a batch.
 */
tokentrie_status tokentrie_batch_free(tokentrie_batch batch);

/**
 * The llama.cpp that llama_sampler_init_token_trie shall use, in place of what is found in the process. NULL: look in
 * the process again. Of several calls at once one is the last.
 */
tokentrie_status tokentrie_bind_llama(const struct tokentrie_llama_api *api);

/**
 * A sampler for a chain of the process's llama.cpp; put it first. `json` ends with a zero and may be freed afterwards;
 * the chain owns the sampler. `vocab` may be NULL: ids are not checked. NULL on a payload that is malformed or has no
 * usable leaf, on an unknown mode, and where there is no llama.cpp that is known; tokentrie_last_error() says why.
 */
struct llama_sampler *llama_sampler_init_token_trie(const struct llama_vocab *vocab,
                                                    const char *json,
                                                    int mode);

/**
 * Returns the state of a sampler from llama_sampler_init_token_trie, while its chain lives: `state` becomes
 * TOKENTRIE_STATE_…, `depth` the tokens walked in the trie; either may be NULL.
 */
tokentrie_status tokentrie_chain_state(const struct llama_sampler *sampler, int32_t *state, size_t *depth);

/**
 * As tokentrie_sampler_leaf, of a sampler from llama_sampler_init_token_trie while its chain lives.
 */
tokentrie_status tokentrie_chain_leaf(const struct llama_sampler *sampler,
                                      uint32_t *leaf,
                                      char *name,
                                      size_t capacity,
                                      size_t *count);

/**
 * Arms a sampler from llama_sampler_init_token_trie at the start of the trie with this path, while its chain lives.
 */
tokentrie_status tokentrie_chain_activate(const struct llama_sampler *sampler,
                                          const char *path,
                                          size_t length);

/**
 * Loads a GGUF; sessions of one file share its weights. `options` may be NULL. `path` is UTF-8.
 */
tokentrie_status tokentrie_session_open(const char *path,
                                        size_t length,
                                        const struct tokentrie_session_options *options,
                                        tokentrie_session *session);

/**
 * Takes a prompt in place of the one before, as a request in JSON says it: `{"prompt": "The sky is ", "slot": 3}`, and
 * computes what the cache does not hold of it. A prompt is token ids, or text, in which names of control tokens become
 * those tokens. A constraint of tokentrie_constraint_from_json that the next generation follows is tokenised together
 * with the end of a text (token healing): the first tokens may spell the end of the prompt again, which is not part of
 * the text that comes. A slot from 0 to 63 names a cache that sessions of the same file and options share, one call at
 * a time; without it the session has its own. `taken` becomes the number of tokens, and may be NULL.
 */
tokentrie_status tokentrie_session_prefill(tokentrie_session session,
                                           const char *json,
                                           size_t length,
                                           size_t *taken);

/**
 * Writes what the cache holds of the prompt that was taken to a file, which appears when it is whole: for
 * tokentrie_session_load_prefix in another process. `path` is UTF-8.
 */
tokentrie_status tokentrie_session_save_prefix(tokentrie_session session, const char *path, size_t length);

/**
 * Takes what such a file holds as the prompt, without computing it. TOKENTRIE_ERROR_FILE for a file that is damaged,
 * of another model or of another llama.cpp. Load files that you trust, as models are. `taken` becomes the number of
 * tokens, and may be NULL.
 */
tokentrie_status tokentrie_session_load_prefix(tokentrie_session session,
                                               const char *path,
                                               size_t length,
                                               size_t *taken);

/**
 * Generates on the calling thread, as a request in JSON says it, and returns at the end: `{"prompt": "The sky is ",
 * "constraint": {"choice": ["blue", "red"]}, "sampling": {"temperature": 0.7, "seed": 1}, "max_tokens": 64,
 * "timeout": 2.5}` and what docs/c-sessions.md lists. Without a prompt it goes on after what was taken and generated
 * before; without a constraint inside what was set, in the mode of that unless the request has `sampling`.
 * tokentrie_session_result has what came of it. `callback` may be NULL.
 */
tokentrie_status tokentrie_session_generate(tokentrie_session session,
                                            const char *json,
                                            size_t length,
                                            tokentrie_token_callback callback,
                                            void *user);

/**
 * The same on a thread of the library; tokentrie_session_next takes its tokens.
 */
tokentrie_status tokentrie_session_start(tokentrie_session session, const char *json, size_t length);

/**
 * Returns the result of the last call, as JSON: of a generation text, tokens, finish, leaf, values and its cost; of a
 * choice the probability of each value; of a probability the estimate and its bounds; of a decision the answers; of a
 * chat that is over, cancelled or not, the reply. docs/c-sessions.md lists the fields. TOKENTRIE_NONE if there is
 * nothing.
 */
tokentrie_status tokentrie_session_result(tokentrie_session session,
                                          char *json,
                                          size_t capacity,
                                          size_t *count);

/**
 * The next token of a generation that was started: waits up to timeout_ms (0: not at all, -1: as long as it takes),
 * else gives TOKENTRIE_NONE. After the last token is_done becomes 1, token -1, without text, once; if the generation
 * failed, its status is returned then. A text buffer that is too small leaves the token for the next call.
 */
tokentrie_status tokentrie_session_next(tokentrie_session session,
                                        int32_t timeout_ms,
                                        int32_t *token,
                                        char *text,
                                        size_t capacity,
                                        size_t *count,
                                        int32_t *is_done);

/**
 * Ends a generation, a prefill, a choice or a probability as soon as the forward pass that runs is over; nothing if
 * none runs. From any thread, and from inside the callback.
 */
tokentrie_status tokentrie_session_cancel(tokentrie_session session);

/**
 * Sets the source of drafts: tokens that are guessed ahead, so that one forward pass verifies several. Outputs stay
 * the same. "prompt" guesses from the text of each generation, "ngram" from all texts of this session since it was
 * set, and the path of a GGUF with the same vocabulary by that model. With length 0 there are none again.
 * TOKENTRIE_ERROR_ARGUMENT if the model or the session cannot have this source: the one before holds.
 */
tokentrie_status tokentrie_session_set_draft(tokentrie_session session,
                                             const char *source,
                                             size_t length);

/**
 * Frees the session. TOKENTRIE_ERROR_BUSY while a call runs: cancel it, wait for is_done, and close again.
 */
tokentrie_status tokentrie_session_close(tokentrie_session session);

/**
 * The tries that the next generations follow, in place of those before: armed at the start of each generation, until
 * they are cleared. If the payload is refused, those before are gone too; after a generation that failed they are gone
 * as well. Then every generation is refused until tries are set or cleared. Leaves that the vocabulary does not have
 * are left out: tokentrie_session_get_info counts them.
 */
tokentrie_status tokentrie_session_set_token_trie(tokentrie_session session,
                                                  const char *json,
                                                  size_t length,
                                                  int32_t mode);

/**
 * The same with tries or a constraint that were made before.
 */
tokentrie_status tokentrie_session_set_trie(tokentrie_session session, tokentrie_trie trie, int32_t mode);

/**
 * Follows nothing any more; as often as you like.
 */
tokentrie_status tokentrie_session_clear_token_trie(tokentrie_session session);

/**
 * Returns the state of the session, at any time. The caller sets info->size.
 */
tokentrie_status tokentrie_session_get_info(tokentrie_session session, struct tokentrie_session_info *info);

/**
 * Returns the load of the engine of a session that was opened with slots; TOKENTRIE_NONE without an engine. At any
 * time. The caller sets info->size.
 */
tokentrie_status tokentrie_session_engine(tokentrie_session session,
                                          struct tokentrie_engine_info *info);

/**
 * The vocabulary of the model, as a handle of its own.
 */
tokentrie_status tokentrie_session_vocab(tokentrie_session session, tokentrie_vocab *vocab);

/**
 * The tokens of a text. `add_special`: with those that begin a text; `parse_special`: names of control tokens become
 * those tokens, only for text that is trusted.
 */
tokentrie_status tokentrie_session_tokenize(tokentrie_session session,
                                            const char *text,
                                            size_t length,
                                            int32_t add_special,
                                            int32_t parse_special,
                                            int32_t *ids,
                                            size_t capacity,
                                            size_t *count);

/**
 * The probability of each value, as a request in JSON says it: `{"prompt": "Is it on? ", "choices": ["yes", "no"],
 * "top": 1}`; choices are texts or a spec with values that can be listed. Without them the values are those of what
 * was set, without a prompt it is asked after what was taken and generated before. Together the probabilities are 1.
 * tokentrie_session_result has what came of it.
 */
tokentrie_status tokentrie_session_choose(tokentrie_session session,
                                          const char *json,
                                          size_t length);

/**
 * The probability that the model writes any text of a constraint, as a request in JSON says it: `{"prompt": "Room ",
 * "constraint": {"regex": "[0-9]+"}, "tolerance": 0.001}` and what docs/c-sessions.md lists. Without a constraint it
 * is that of what was set, without a prompt it is asked after what was taken and generated before.
 * tokentrie_session_result has the estimate and its bounds, also where the time was over first.
 */
tokentrie_status tokentrie_session_probability(tokentrie_session session,
                                               const char *json,
                                               size_t length);

/**
 * Answers typed questions about a state, as a request in JSON says them: `{"state": "...", "questions": {"team":
 * {"type": "choice", "options": ["billing", "access"]}}, "permute": 2}`; `"states"` are several. The state is decoded
 * once for all questions. tokentrie_session_result has the answers, an array with one object for each state.
 */
tokentrie_status tokentrie_session_decide(tokentrie_session session,
                                          const char *json,
                                          size_t length);

/**
 * Sets how the replies of the chats of a session are read and constrained: a response template in JSON, as its author
 * publishes it for transformers, or a `tokenizer_config.json` that has one. With length 0 the model's own format
 * holds again. TOKENTRIE_ERROR_SPEC if it is invalid: the format is as it was.
 */
tokentrie_status tokentrie_session_set_response_template(tokentrie_session session,
                                                         const char *json,
                                                         size_t length);

/**
 * The prompt of a request, in tokens: the conversation as the model's own template writes it. What messages and tools
 * contain is plain text: a control token's name in it stays text.
 */
tokentrie_status tokentrie_chat_prompt(tokentrie_session session,
                                       const char *json,
                                       size_t length,
                                       int32_t *ids,
                                       size_t capacity,
                                       size_t *count);

/**
 * Answers a conversation on a thread of the library: `{"messages": [...], "tools": [...], "tool_choice": "auto"}` and
 * what else docs/c-sessions.md lists. Calls of tools are right by construction. tokentrie_session_next gives the
 * events, each a JSON object as its text, such as `{"kind": "content", "text": "Hel"}`; tokentrie_session_result the
 * whole reply once it is over: `{"message": {"role": "assistant", ...}, "finish": "stop", "warnings": [...], "stats":
 * {...}}`. Its message goes on into the next request. Of a conversation that goes on only new tokens are decoded. The
 * prompt that was taken before is gone.
 */
tokentrie_status tokentrie_chat_start(tokentrie_session session,
                                      const char *json,
                                      size_t length);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* TOKENTRIE_H */
