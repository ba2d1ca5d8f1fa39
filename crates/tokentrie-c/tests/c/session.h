/* What the programs that test sessions share. */
#ifndef SESSION_H
#define SESSION_H

#include "check.h"

#include <pthread.h>
#include <stdint.h>

static const char *model_path, *program_path;

static const char PROMPT[] = "Label the review: positive, negative or neutral.\nThe service is so great.\nLabel: ";
static const char LABELS[] = "positivenegativeneutral";
static const uint64_t LABEL_ENDS[] = {8, 16, 23};

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
    STATUS(TOKENTRIE_ERROR_BUSY, tokentrie_session_generate(to->session, 1, 0, 1, listen, &inner));
    CHECK(inner.done == 1 && inner.n == 0);
    STATUS(TOKENTRIE_ERROR_BUSY, tokentrie_session_start(to->session, 1, 0, 1));
    STATUS(TOKENTRIE_ERROR_BUSY, tokentrie_session_prefill(to->session, &token, 1, -1, NULL));
    STATUS(TOKENTRIE_ERROR_BUSY, tokentrie_session_close(to->session));
    STATUS(TOKENTRIE_ERROR_BUSY, tokentrie_session_clear_token_trie(to->session));
    STATUS(TOKENTRIE_ERROR_BUSY, tokentrie_session_set_token_trie(to->session, "{}", 2, 0));
    SAYS("generate runs");
    tokentrie_session_info info = {.size = sizeof info};
    OK(tokentrie_session_get_info(to->session, &info));
    CHECK(info.generating == 1);
    uint32_t leaf = 7;
    size_t n = 0;
    STATUS(TOKENTRIE_NONE, tokentrie_session_leaf(to->session, &leaf, NULL, 0, &n));
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

static inline size_t prefill(tokentrie_session session, int32_t slot) {
  int32_t ids[256];
  size_t n = 0, taken = 0;
  OK(tokentrie_session_tokenize(session, PROMPT, strlen(PROMPT), 1, 0, ids, LENGTH(ids), &n));
  OK(tokentrie_session_prefill(session, ids, n, slot, &taken));
  CHECK(taken == n);
  return n;
}

static inline tokentrie_trie labels(tokentrie_session session) {
  tokentrie_trie trie = 0;
  OK(tokentrie_session_texts(session, LABELS, strlen(LABELS), LABEL_ENDS, 3, NULL, 0, NULL, 0, &trie));
  return trie;
}

static inline tokentrie_session_info info_of(tokentrie_session session) {
  tokentrie_session_info info = {.size = sizeof info};
  OK(tokentrie_session_get_info(session, &info));
  return info;
}

static inline void *generate_there(void *argument) {
  heard *to = argument;
  OK(tokentrie_session_generate(to->session, 100, 0, 1, listen, to));
  return NULL;
}

#endif
