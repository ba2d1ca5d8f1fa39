/* How generations end where something is in their way, from C, on a model: ends MODEL.gguf */
#include "session.h"

#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int is_child;

/* Asked by LeakSanitizer at exit: in a child, what only the stacks of its parent's threads know looks lost. */
int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void) { return is_child; }

/* What the sessions of a child say that was forked while another thread used them; it ends without waiting for it. */
static void forked(void) {
  tokentrie_session busy = open_session(TOKENTRIE_AFTER_FREE), other = open_session(TOKENTRIE_AFTER_FREE);
  prefill(other, 5);
  prefill(busy, 5);
  /* Its thread is in the middle of a callback. */
  pthread_mutex_t pause = PTHREAD_MUTEX_INITIALIZER;
  heard there = {.session = busy, .pause = &pause};
  pthread_mutex_lock(&pause);
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, generate_there, &there) == 0);
  while (!__atomic_load_n(&there.n, __ATOMIC_SEQ_CST)) {}
  time_t began = time(NULL);
  fflush(stdout);
  pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    is_child = 1;
    alarm(60);
    heard to = {.session = busy};
    STATUS(TOKENTRIE_ERROR_BUSY, generate(busy, "{\"max_tokens\": 3}", &to));
    SAYS("forked");
    CHECK(to.done == 1);
    /* The slot is in use by a thread that is not here. */
    STATUS(TOKENTRIE_ERROR_BUSY, generate(other, "{\"max_tokens\": 3}", NULL));
    SAYS("forked");
    STATUS(TOKENTRIE_ERROR_BUSY, tokentrie_session_close(busy));
    /* Others work. */
    tokentrie_session fresh = open_session(TOKENTRIE_AFTER_FREE);
    prefill(fresh, -1);
    heard said = {.session = fresh};
    OK(generate(fresh, "{\"max_tokens\": 3}", &said));
    CHECK(said.done == 1 && said.n >= 1);
    exit(7);
  }
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
  CHECK(time(NULL) - began < 25);
  pthread_mutex_unlock(&pause);
  CHECK(pthread_join(thread, NULL) == 0 && there.done == 1);
  OK(tokentrie_session_close(busy));
  OK(tokentrie_session_close(other));
}

/* Who hears of the end finds the session free; whoever begins then never gets that end. */
static void no_end_of_another(void) {
  tokentrie_session session = open_session(TOKENTRIE_AFTER_FREE);
  for (int round = 0; round < 400; round++) {
    prefill(session, -1);
    OK(START(session, "{\"max_tokens\": 1}"));
    tokentrie_status status;
    while ((status = START(session, "{\"max_tokens\": 2}")) == TOKENTRIE_ERROR_BUSY) {}
    OK(status);
    int32_t token = -1, is_done = 0;
    char text[64];
    size_t n = 0, tokens = 0;
    for (; !is_done; tokens += !is_done)
      OK(tokentrie_session_next(session, -1, &token, text, sizeof text, &n, &is_done));
    CHECK(tokens == info_of(session).tokens && tokens > 0);
    STATUS(TOKENTRIE_ERROR_NOT_ALLOWED, tokentrie_session_next(session, 0, &token, text, sizeof text, &n, &is_done));
  }
  OK(tokentrie_session_close(session));
}

/* Callbacks, next, the info and the result count the same tokens, also where the model ends its output. */
static void one_count(void) {
  tokentrie_session session = open_session(TOKENTRIE_AFTER_FREE);
  static const char free_prompt[] =
      "{\"prompt\": \"<|im_start|>user\\nTell me something.<|im_end|>\\n<|im_start|>assistant\\n\"}";
  int ended = 0;
  for (int round = 0; round < 40; round++) {
    char request[256];
    snprintf(request, sizeof request, "{\"sampling\": {\"temperature\": %g, \"seed\": %d}, \"max_tokens\": 200}",
             round ? 0.8 : 0.0, round);
    OK(PREFILL(session, free_prompt, NULL));
    heard to = {.session = session};
    OK(tokentrie_session_generate(session, request, strlen(request), listen, &to));
    tokentrie_session_info info = info_of(session);
    int is_end = info.finish == TOKENTRIE_FINISH_END_OF_GENERATION;
    ended += is_end;
    CHECK(to.done == 1 && to.n == info.tokens);
    CHECK(info.tokens + (uint64_t)is_end == info.forced_tokens + info.sampled_tokens);
    static char json[1 << 16];
    size_t n = 0, commas = 0;
    OK(tokentrie_session_result(session, json, sizeof json - 1, &n));
    json[n] = 0;
    char *tokens = strstr(json, "\"tokens\":[");
    CHECK(tokens != NULL);
    for (char *at = tokens; *at != ']'; at++) commas += *at == ',';
    CHECK(to.n == 0 || commas + 1 == to.n);
    OK(PREFILL(session, free_prompt, NULL));
    OK(tokentrie_session_start(session, request, strlen(request)));
    size_t taken = 0;
    for (int32_t token = 0, is_done = 0; !is_done;) {
      char text[256];
      OK(tokentrie_session_next(session, -1, &token, text, sizeof text, &n, &is_done));
      if (!is_done) CHECK(taken < to.n && token == to.tokens[taken++]);
    }
    CHECK(taken == to.n);
  }
  CHECK(ended > 0);
  OK(tokentrie_session_close(session));
}

/* Leaves that are left out are counted, by whatever way they came. */
static void left_out(void) {
  void *handle = eliza_inference_llm_stream_open(model_path, 512, 1, 0);
  CHECK(handle != NULL);
  tokentrie_session session = (tokentrie_session)(uintptr_t)handle;
  prefill(session, -1);
  static const char payload[] =
      "{\"modelId\": \"m\", \"descriptors\": [{\"path\": \"a\", \"leaves\": [{\"name\": \"in\", \"tokens\": [300]},"
      " {\"name\": \"out\", \"tokens\": [300, 2000000000]}, {\"name\": \"far\", \"tokens\": [1999999999]},"
      " {\"name\": \"none\", \"tokens\": []}]}]}";
  static const char whole[] =
      "{\"descriptors\": [{\"path\": \"a\", \"leaves\": [{\"name\": \"in\", \"tokens\": [300]}]}]}";
  OK(tokentrie_session_set_token_trie(session, payload, strlen(payload), 0));
  CHECK(info_of(session).outside_vocabulary == 2 && info_of(session).empty_leaves == 1);
  OK(tokentrie_session_set_token_trie(session, whole, strlen(whole), 0));
  CHECK(info_of(session).outside_vocabulary == 0 && info_of(session).empty_leaves == 0);
  /* A second time from the cache, by the other name. */
  CHECK(eliza_inference_set_token_trie(handle, payload, strlen(payload), 0) == 0);
  CHECK(info_of(session).outside_vocabulary == 2 && info_of(session).empty_leaves == 1);
  CHECK(eliza_inference_llm_stream_generate(handle, 1, 0, 1, NULL, NULL) == 0);
  CHECK(info_of(session).outside_vocabulary == 2);
  CHECK(eliza_inference_set_token_trie(handle, "{}", 2, 0) < 0);
  CHECK(info_of(session).outside_vocabulary == 0);
  CHECK(eliza_inference_clear_token_trie(handle) == 0);

  /* A trie and a constraint that were made before, and one that a request brings. */
  tokentrie_vocab vocab = 0;
  tokentrie_trie trie = 0;
  tokentrie_constraint constraint = 0;
  char json[1024];
  OK(tokentrie_session_vocab(session, &vocab));
  OK(tokentrie_trie_from_json(payload, strlen(payload), vocab, 0, &trie));
  OK(tokentrie_session_set_trie(session, trie, 0));
  CHECK(info_of(session).outside_vocabulary == 2 && info_of(session).empty_leaves == 1);
  int length = snprintf(json, sizeof json, "{\"payload\": %s}", payload);
  OK(tokentrie_constraint_from_json(json, (size_t)length, vocab, &constraint));
  OK(tokentrie_session_set_token_trie(session, whole, strlen(whole), 0));
  OK(tokentrie_session_set_trie(session, constraint, 0));
  CHECK(info_of(session).outside_vocabulary == 2 && info_of(session).empty_leaves == 1);
  OK(tokentrie_session_clear_token_trie(session));
  OK(tokentrie_session_set_token_trie(session, whole, strlen(whole), 0));
  length = snprintf(json, sizeof json, "{\"prompt\": \"x\", \"constraint\": {\"payload\": %s}, \"after\": \"stop\"}",
                    payload);
  OK(tokentrie_session_generate(session, json, (size_t)length, NULL, NULL));
  CHECK(info_of(session).outside_vocabulary == 2);
  length = snprintf(json, sizeof json, "{\"prompt\": \"x\", \"choices\": {\"payload\": %s}}", payload);
  OK(tokentrie_session_set_token_trie(session, whole, strlen(whole), 0));
  OK(tokentrie_session_choose(session, json, (size_t)length));
  CHECK(info_of(session).outside_vocabulary == 2);
  OK(tokentrie_constraint_free(constraint));
  OK(tokentrie_trie_free(trie));
  OK(tokentrie_vocab_free(vocab));
  eliza_inference_llm_stream_close(handle);
}

int main(int count, char **arguments) {
  if (count != 2) return 2;
  program_path = arguments[0];
  model_path = arguments[1];
  one_count();
  left_out();
  no_end_of_another();
  forked();
  puts("ends: everything as promised");
  return 0;
}
