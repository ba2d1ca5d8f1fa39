/* Sessions of tokentrie under the names that one agent runtime looks for in a library; docs/c.md tells of them.
 *
 * Made by cbindgen from crates/tokentrie-c: do not edit.
 *
 * The handle of that runtime is the number of a session, in a pointer: all functions of tokentrie.h work on it too.
 * What they give is what its interface says, so that it needs no code of ours. They are in libraries with llama.cpp
 * alone.
 */

#ifndef TOKENTRIE_ELIZA_H
#define TOKENTRIE_ELIZA_H

#include "tokentrie.h"

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * A session, or NULL; tokentrie_last_error() says why. Numbers below 1 take the defaults (threads, layers), and more
 * context than the model was trained on becomes that. Text goes on after a leaf.
 */
void *eliza_inference_llm_stream_open(const char *model_path,
                                      int32_t context_tokens,
                                      int32_t threads,
                                      int32_t gpu_layers);

/**
 * 1: there are sessions.
 */
int32_t eliza_inference_llm_stream_supported(void);

/**
 * The number of tokens taken, or -1.
 */
int32_t eliza_inference_llm_stream_prefill(void *handle, const int32_t *ids, int32_t n_ids, int32_t slot);

/**
 * As tokentrie_session_generate; 0, or -1.
 */
int32_t eliza_inference_llm_stream_generate(void *handle,
                                            int32_t max_new_tokens,
                                            float temperature,
                                            float top_p,
                                            tokentrie_token_callback callback,
                                            void *user);

/**
 * The pull form: waits for at least one step, and takes what is there. Begins a greedy generation where none was
 * started (tokentrie_session_start). 0: there is more, 1: that was the last, negative: an error, and a sentence in
 * *out_error unless that is NULL, for eliza_inference_free_string. `text` ends with a zero. Nothing is drafted: both
 * numbers become 0, and may be NULL.
 */
int32_t eliza_inference_llm_stream_next(void *handle,
                                        int32_t *tokens,
                                        size_t tokens_capacity,
                                        size_t *n_tokens,
                                        char *text,
                                        size_t text_capacity,
                                        int32_t *drafted,
                                        int32_t *accepted,
                                        char **out_error);

/**
 * Calls tokentrie_session_cancel for the stream.
 */
void eliza_inference_llm_stream_cancel(void *handle);

/**
 * As tokentrie_session_close; nothing for NULL.
 */
void eliza_inference_llm_stream_close(void *handle);

/**
 * Calls tokentrie_session_set_token_trie for the stream.
 */
tokentrie_status eliza_inference_set_token_trie(void *handle, const char *json, size_t length, int32_t mode);

/**
 * Calls tokentrie_session_clear_token_trie for the stream.
 */
tokentrie_status eliza_inference_clear_token_trie(void *handle);

/**
 * Frees a sentence of this library; nothing for NULL.
 */
void eliza_inference_free_string(char *text);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* TOKENTRIE_ELIZA_H */
