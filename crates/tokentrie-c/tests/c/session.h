/* What the programs that test sessions share. */
#ifndef SESSION_H
#define SESSION_H

#include "check.h"
#include "tokentrie_eliza.h"

#include <pthread.h>
#include <stdint.h>

static const char *model_path, *program_path;

static const char PROMPT[] = "Label the review: positive, negative or neutral.\nThe service is so great.\nLabel: ";
static const char LABELS[] = "{\"choice\": [\"positive\", \"negative\", \"neutral\"]}";

typedef struct heard {
  tokentrie_session session;
  int32_t tokens[256];
  size_t n;
  char text[4096];
  size_t n_text;
  int done;
  /* What the callback does at its first token. */
  int cancels, misuses;
  pthread_mutex_t *pause;
} heard;

/* Requests of C strings. */
#define START(session, request) tokentrie_session_start(session, request, strlen(request))
#define PREFILL(session, request, taken) tokentrie_session_prefill(session, request, strlen(request), taken)

static inline tokentrie_status generate(tokentrie_session session, const char *request, heard *to);

static inline void listen(int32_t token, const char *text, int32_t is_done, void *user) {
  heard *to = user;
  if (is_done) {
    CHECK(token == -1 && text[0] == 0);
    to->done++;
    return;
  }
  CHECK(to->done == 0 && to->n < LENGTH(to->tokens));
  to->tokens[to->n++] = token;
  size_t length = strlen(text);
  CHECK(to->n_text + length < sizeof to->text);
  memcpy(to->text + to->n_text, text, length + 1);
  to->n_text += length;
  if (to->n > 1) return;
  if (to->pause) {
    pthread_mutex_lock(to->pause);
    pthread_mutex_unlock(to->pause);
  }
  if (to->misuses) {
    heard inner = {0};
    STATUS(TOKENTRIE_ERROR_BUSY, generate(to->session, "{\"max_tokens\": 1}", &inner));
    CHECK(inner.done == 1 && inner.n == 0);
    STATUS(TOKENTRIE_ERROR_BUSY, START(to->session, "{\"max_tokens\": 1}"));
    STATUS(TOKENTRIE_ERROR_BUSY, PREFILL(to->session, "{\"prompt\": [50]}", NULL));
    STATUS(TOKENTRIE_ERROR_BUSY, tokentrie_session_close(to->session));
    STATUS(TOKENTRIE_ERROR_BUSY, tokentrie_session_clear_token_trie(to->session));
    STATUS(TOKENTRIE_ERROR_BUSY, tokentrie_session_set_token_trie(to->session, "{}", 2, 0));
    SAYS("generate runs");
    tokentrie_session_info info = {.size = sizeof info};
    OK(tokentrie_session_get_info(to->session, &info));
    CHECK(info.generating == 1);
    size_t n = 0;
    STATUS(TOKENTRIE_NONE, tokentrie_session_result(to->session, NULL, 0, &n));
    int32_t ids[8];
    OK(tokentrie_session_tokenize(to->session, "a", 1, 0, 0, ids, LENGTH(ids), &n));
    tokentrie_vocab vocab = 0;
    OK(tokentrie_session_vocab(to->session, &vocab));
    OK(tokentrie_vocab_free(vocab));
  }
  if (to->cancels) OK(tokentrie_session_cancel(to->session));
}

static inline tokentrie_session open_session(int32_t after) {
  tokentrie_session_options options = {.size = sizeof options, .n_ctx = 512, .n_threads = 1, .after = after,
                                       .seed = 3, .has_seed = 1};
  tokentrie_session session = 0;
  OK(tokentrie_session_open(model_path, strlen(model_path), &options, &session));
  return session;
}

static inline tokentrie_status generate(tokentrie_session session, const char *request, heard *to) {
  return tokentrie_session_generate(session, request, strlen(request), to ? listen : NULL, to);
}

/* The request of a prompt of ids; a slot below 0 is the session's own. */
static inline const char *prompt_of(const int32_t *ids, size_t n_ids, int32_t slot) {
  static _Thread_local char json[1 << 14];
  int length = snprintf(json, sizeof json, slot < 0 ? "{\"prompt\": [" : "{\"slot\": %d, \"prompt\": [", (int)slot);
  for (size_t i = 0; i < n_ids; i++)
    length += snprintf(json + length, sizeof json - (size_t)length, i ? ",%d" : "%d", (int)ids[i]);
  CHECK((size_t)length + 3 < sizeof json);
  memcpy(json + length, "]}", 3);
  return json;
}

static inline size_t prefill(tokentrie_session session, int32_t slot) {
  int32_t ids[256];
  size_t n = 0, taken = 0;
  OK(tokentrie_session_tokenize(session, PROMPT, strlen(PROMPT), 1, 0, ids, LENGTH(ids), &n));
  OK(PREFILL(session, prompt_of(ids, n, slot), &taken));
  CHECK(taken == n);
  return n;
}

/* The set of a spec with few values, in the tokens of the model. */
static inline tokentrie_trie set_of(tokentrie_session session, const char *spec) {
  tokentrie_vocab vocab = 0;
  tokentrie_constraint constraint = 0;
  tokentrie_trie trie = 0;
  OK(tokentrie_session_vocab(session, &vocab));
  OK(tokentrie_constraint_from_json(spec, strlen(spec), vocab, &constraint));
  OK(tokentrie_constraint_trie(constraint, &trie));
  OK(tokentrie_constraint_free(constraint));
  OK(tokentrie_vocab_free(vocab));
  return trie;
}

static inline tokentrie_trie labels(tokentrie_session session) { return set_of(session, LABELS); }

static inline const char *result_of(tokentrie_session session) {
  static char json[1 << 16];
  size_t n = 0;
  OK(tokentrie_session_result(session, json, sizeof json - 1, &n));
  json[n] = 0;
  return json;
}

/* Whether the last generation completed this leaf. */
static inline int has_leaf(tokentrie_session session, uint32_t index, const char *name, size_t n_name) {
  char wanted[128];
  snprintf(wanted, sizeof wanted, "\"leaf\":{\"index\":%u,\"name\":\"%.*s\",", (unsigned)index, (int)n_name, name);
  return strstr(result_of(session), wanted) != NULL;
}

static inline tokentrie_session_info info_of(tokentrie_session session) {
  tokentrie_session_info info = {.size = sizeof info};
  OK(tokentrie_session_get_info(session, &info));
  return info;
}

static inline void *generate_there(void *argument) {
  heard *to = argument;
  OK(generate(to->session, "{\"max_tokens\": 100}", to));
  return NULL;
}

#endif
