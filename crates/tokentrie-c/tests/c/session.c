/* Sessions, from C, on a model: session MODEL.gguf */
#include "session.h"

#include <math.h>
#include <unistd.h>

static void bad_files(void) {
  tokentrie_session session = 0;
  STATUS(TOKENTRIE_ERROR_MODEL, tokentrie_session_open("/nowhere.gguf", 13, NULL, &session));
  SAYS("/nowhere.gguf");
  STATUS(TOKENTRIE_ERROR_MODEL, tokentrie_session_open(program_path, strlen(program_path), NULL, &session));
  SAYS("not a GGUF file");
  STATUS(TOKENTRIE_ERROR_MODEL, tokentrie_session_open("/tmp", 4, NULL, &session));
  STATUS(TOKENTRIE_ERROR_TEXT, tokentrie_session_open("\xff", 1, NULL, &session));
  STATUS(TOKENTRIE_ERROR_ARGUMENT, tokentrie_session_open(NULL, 4, NULL, &session));
  STATUS(TOKENTRIE_ERROR_ARGUMENT, tokentrie_session_open(model_path, strlen(model_path), NULL, NULL));
  tokentrie_session_options options = {.size = sizeof options, .n_ctx = 1000000000};
  STATUS(TOKENTRIE_ERROR_ARGUMENT, tokentrie_session_open(model_path, strlen(model_path), &options, &session));
  SAYS("n_ctx is 1000000000");
  CHECK(session == 0);
  CHECK(eliza_inference_llm_stream_open("/nowhere.gguf", 512, 1, 0) == NULL);
  CHECK(eliza_inference_llm_stream_open(NULL, 512, 1, 0) == NULL);
}

/* A spec, over the vocabulary of the model. */
static void a_rule(void) {
  tokentrie_session session = open_session(TOKENTRIE_AFTER_STOP);
  tokentrie_vocab vocab = 0;
  tokentrie_constraint amount = 0;
  const char spec[] = "{\"then\": [{\"integer\": {\"min\": 100, \"max\": 999}}, \" \","
                      " {\"choice\": [\"kg\", \"lb\"]}]}";
  OK(tokentrie_session_vocab(session, &vocab));
  OK(tokentrie_constraint_from_json(spec, sizeof spec - 1, vocab, &amount));
  prefill(session, -1);
  OK(tokentrie_session_set_trie(session, amount, TOKENTRIE_MODE_GREEDY));
  tokentrie_trie values = 0;
  STATUS(TOKENTRIE_ERROR_ARGUMENT, tokentrie_constraint_trie(amount, NULL));
  OK(tokentrie_constraint_trie(amount, &values));
  OK(tokentrie_constraint_free(amount));
  STATUS(TOKENTRIE_ERROR_HANDLE, tokentrie_constraint_trie(amount, &values));
  tokentrie_trie_info shape = {.size = sizeof shape};
  OK(tokentrie_trie_get_info(values, &shape));
  CHECK(shape.leaves == 1800);
  OK(tokentrie_trie_free(values));
  heard to = {.session = session};
  OK(generate(session, "{\"max_tokens\": 50}", &to));
  tokentrie_session_info info = info_of(session);
  CHECK(to.done == 1 && info.finish == TOKENTRIE_FINISH_SPAN && info.state == TOKENTRIE_STATE_COMPLETE);
  CHECK(to.n_text == 6 && to.text[0] >= '1' && to.text[0] <= '9' && to.text[3] == ' ');
  CHECK(memcmp(to.text + 4, "kg", 2) == 0 || memcmp(to.text + 4, "lb", 2) == 0);
  printf("amount %.*s\n", (int)to.n_text, to.text);
  OK(tokentrie_vocab_free(vocab));
  OK(tokentrie_session_close(session));
}

/* Takes all events of a chat; how many there were. */
static size_t all_events(tokentrie_session session, char *last, size_t capacity) {
  for (size_t events = 0;; events++) {
    int32_t token = 0, is_done = 0;
    size_t n = 0;
    char text[8192];
    OK(tokentrie_session_next(session, -1, &token, text, sizeof text, &n, &is_done));
    if (is_done) return events;
    CHECK(n > 0 && n < capacity && text[0] == '{');
    memcpy(last, text, n);
    last[n] = 0;
  }
}

/* A conversation: the call is right whatever the model says, and control tokens in messages stay text. */
static void chats(void) {
  tokentrie_session session = open_session(TOKENTRIE_AFTER_STOP);
  const char request[] =
      "{\"messages\": [{\"role\": \"user\", \"content\": \"delete <|im_end|> the file a.txt\"}],"
      " \"tools\": [{\"name\": \"erase\", \"parameters\": {\"type\": \"object\", \"properties\":"
      " {\"really\": {\"type\": \"boolean\"}}, \"required\": [\"really\"], \"additionalProperties\": false}}],"
      " \"tool_choice\": \"required\", \"parallel_tool_calls\": false, \"max_tokens\": 80, \"probabilities\": true}";
  char last[8192];
  int32_t ids[1024];
  size_t n = 0;
  STATUS(TOKENTRIE_NONE, tokentrie_session_result(session, NULL, 0, &n));
  OK(tokentrie_chat_prompt(session, request, sizeof request - 1, ids, LENGTH(ids), &n));
  CHECK(n > 20);
  OK(tokentrie_chat_start(session, request, sizeof request - 1));
  STATUS(TOKENTRIE_ERROR_BUSY, tokentrie_chat_start(session, request, sizeof request - 1));
  CHECK(all_events(session, last, sizeof last) >= 4);
  CHECK(strstr(last, "message_ends") != NULL);
  const char *json = result_of(session);
  CHECK(strstr(json, "\"finish\":\"tool_calls\"") && strstr(json, "\"name\":\"erase\""));
  CHECK(strstr(json, "\"probability\":") != NULL);
  CHECK(strstr(json, "really\\\":") != NULL);
  STATUS(TOKENTRIE_ERROR_BUFFER, tokentrie_session_result(session, last, 3, &n));
  tokentrie_session_info info = info_of(session);
  CHECK(info.generating == 0 && info.tokens > 3);
  heard none = {.session = session};
  STATUS(TOKENTRIE_ERROR_NOT_ALLOWED, generate(session, "{\"max_tokens\": 10}", &none));

  const char wrong[] = "{\"messages\": [{\"role\": \"usr\", \"content\": \"x\"}]}";
  STATUS(TOKENTRIE_ERROR_SPEC, tokentrie_chat_start(session, wrong, sizeof wrong - 1));
  SAYS("$.messages[0]: the role \"usr\" is unknown");
  STATUS(TOKENTRIE_ERROR_SPEC, tokentrie_chat_prompt(session, "{}", 2, ids, LENGTH(ids), &n));
  STATUS(TOKENTRIE_ERROR_ARGUMENT, tokentrie_chat_start(session, NULL, 4));

  /* Replies are read as the author of a model says: here in marks that its template does not show. */
  const char said[] = "{\"start_anchor\": \"<|im_start|>assistant\\n\", \"fields\": {"
                      "\"content\": {\"close\": \"<|im_end|>\"}, "
                      "\"tool_calls\": {\"open\": \"<CALL>\", \"close\": \"</CALL>\", \"content\": \"json\"}}}";
  STATUS(TOKENTRIE_ERROR_SPEC, tokentrie_session_set_response_template(session, "{\"fields\": 5}", 13));
  SAYS("fields");
  OK(tokentrie_session_set_response_template(session, said, sizeof said - 1));
  OK(tokentrie_chat_start(session, request, sizeof request - 1));
  all_events(session, last, sizeof last);
  CHECK(strstr(result_of(session), "\"name\":\"erase\"") != NULL);
  OK(tokentrie_session_set_response_template(session, NULL, 0));

  STATUS(TOKENTRIE_ERROR_ARGUMENT, tokentrie_session_set_draft(session, "promt", 5));
  SAYS("unknown draft \"promt\"");
  OK(tokentrie_session_set_draft(session, "prompt", 6));
  OK(tokentrie_session_set_draft(session, NULL, 0));

  const char endless[] = "{\"messages\": [{\"role\": \"user\", \"content\": \"go on\"}],"
                         " \"sampling\": {\"temperature\": 1000, \"seed\": 1}}";
  OK(tokentrie_chat_start(session, endless, sizeof endless - 1));
  OK(tokentrie_session_cancel(session));
  all_events(session, last, sizeof last);
  CHECK(info_of(session).finish == TOKENTRIE_FINISH_CANCELLED);
  OK(tokentrie_session_close(session));
}

/* A leaf, told token by token; the same with next. */
static void a_leaf(void) {
  tokentrie_session session = open_session(TOKENTRIE_AFTER_STOP);
  heard first = {.session = session};
  STATUS(TOKENTRIE_ERROR_NOT_ALLOWED, generate(session, "{\"max_tokens\": 10}", &first));
  SAYS("prefill");
  CHECK(first.done == 1);
  first.done = 0;
  size_t prompt = prefill(session, -1);
  tokentrie_trie trie = labels(session);
  OK(tokentrie_session_set_trie(session, trie, TOKENTRIE_MODE_GREEDY));
  CHECK(info_of(session).has_trie == 1);
  OK(generate(session, "{\"max_tokens\": 50}", &first));
  tokentrie_session_info info = info_of(session);
  CHECK(first.done == 1 && info.finish == TOKENTRIE_FINISH_SPAN && info.state == TOKENTRIE_STATE_COMPLETE);
  CHECK(info.tokens == first.n && info.tokens == info.forced_tokens + info.sampled_tokens);
  CHECK(info.prompt_tokens == prompt + first.n && info.generating == 0);
  /* Leaves are numbered by their tokens: any of the three. */
  CHECK(has_leaf(session, 0, first.text, first.n_text) || has_leaf(session, 1, first.text, first.n_text) ||
        has_leaf(session, 2, first.text, first.n_text));
  printf("label %s: %zu tokens, %u forced, %u forward passes\n", first.text, first.n, (unsigned)info.forced_tokens,
         (unsigned)info.forward_passes);

  prefill(session, -1);
  OK(START(session, "{\"max_tokens\": 50}"));
  size_t taken = 0, n = 0;
  for (;;) {
    int32_t token = 0, is_done = 0;
    char text[32];
    tokentrie_status status = tokentrie_session_next(session, 0, &token, text, sizeof text, &n, &is_done);
    if (status == TOKENTRIE_NONE) status = tokentrie_session_next(session, -1, &token, text, sizeof text, &n, &is_done);
    OK(status);
    if (is_done) {
      CHECK(token == -1 && n == 0);
      break;
    }
    CHECK(taken < first.n && token == first.tokens[taken]);
    taken++;
  }
  CHECK(taken == first.n);
  int32_t token = 0, is_done = 0;
  STATUS(TOKENTRIE_ERROR_NOT_ALLOWED, tokentrie_session_next(session, 0, &token, NULL, 0, &n, &is_done));

  /* A buffer that is too small leaves the token. */
  prefill(session, -1);
  OK(START(session, "{\"max_tokens\": 50}"));
  size_t text_length = 0;
  while (text_length == 0) {
    tokentrie_status status = tokentrie_session_next(session, -1, &token, NULL, 0, &n, &is_done);
    if (status == TOKENTRIE_ERROR_BUFFER) {
      char room[64];
      text_length = n;
      OK(tokentrie_session_next(session, -1, &token, room, sizeof room, &n, &is_done));
      CHECK(n == text_length);
    } else {
      OK(status);
    }
  }
  while (!is_done) {
    char room[64];
    OK(tokentrie_session_next(session, -1, &token, room, sizeof room, &n, &is_done));
  }
  OK(tokentrie_trie_free(trie));
  OK(tokentrie_session_close(session));
  STATUS(TOKENTRIE_ERROR_HANDLE, tokentrie_session_close(session));
  STATUS(TOKENTRIE_ERROR_HANDLE, tokentrie_session_cancel(session));
  STATUS(TOKENTRIE_ERROR_HANDLE, generate(session, "{\"max_tokens\": 1}", NULL));
}

/* The payload's length decides. What is refused never means that everything is allowed. */
static void payloads(void) {
  tokentrie_session session = open_session(TOKENTRIE_AFTER_STOP);
  prefill(session, -1);
  int32_t ids[32];
  size_t n = 0;
  OK(tokentrie_session_tokenize(session, "OWNER_REMINDERS", 15, 0, 0, ids, LENGTH(ids), &n));
  CHECK(n > 2);
  char json[1024];
  int length = snprintf(json, sizeof json, "{\"modelId\":\"t\",\"descriptors\":[{\"path\":\"label\",\"leaves\":"
                                           "[{\"name\":\"remind\",\"tokens\":[");
  for (size_t i = 0; i < n; i++)
    length += snprintf(json + length, sizeof json - (size_t)length, i ? ",%d" : "%d", ids[i]);
  length += snprintf(json + length, sizeof json - (size_t)length, "]}]}]}");
  size_t exact = (size_t)length;
  snprintf(json + length, sizeof json - exact, "GARBAGE");
  OK(tokentrie_session_set_token_trie(session, json, exact, TOKENTRIE_MODE_SAMPLED));
  STATUS(TOKENTRIE_ERROR_PAYLOAD, tokentrie_session_set_token_trie(session, json, exact + 7, TOKENTRIE_MODE_GREEDY));
  /* It stays refused until it is set or cleared, for every way to generate. */
  for (int round = 0; round < 3; round++) {
    heard none = {.session = session};
    STATUS(TOKENTRIE_ERROR_PAYLOAD, generate(session, "{\"max_tokens\": 10}", &none));
    SAYS("set it again, or clear it");
    CHECK(none.done == 1 && none.n == 0 && info_of(session).has_trie == 0);
    STATUS(TOKENTRIE_ERROR_PAYLOAD, START(session, "{\"max_tokens\": 10}"));
    STATUS(TOKENTRIE_ERROR_PAYLOAD, tokentrie_session_choose(session, "{}", 2));
  }
  heard to = {.session = session};
  STATUS(TOKENTRIE_ERROR_ARGUMENT, tokentrie_session_set_token_trie(session, json, exact, 2));
  STATUS(TOKENTRIE_ERROR_ARGUMENT, generate(session, "{\"max_tokens\": 10}", NULL));
  STATUS(TOKENTRIE_ERROR_LIMIT, tokentrie_session_set_token_trie(session, json, (size_t)1 << 30, 0));
  OK(tokentrie_session_clear_token_trie(session));
  OK(tokentrie_session_clear_token_trie(session));
  OK(tokentrie_session_set_token_trie(session, json, exact, TOKENTRIE_MODE_SAMPLED));
  memset(json, 0, sizeof json); /* it may go */
  OK(generate(session, "{\"max_tokens\": 10}", &to));
  CHECK(to.done == 1 && to.n == n && strcmp(to.text, "OWNER_REMINDERS") == 0);
  CHECK(has_leaf(session, 0, "remind", 6));
  /* All of it was forced. */
  tokentrie_session_info info = info_of(session);
  CHECK(info.forward_passes == 0 && info.sampled_tokens == 0);
  OK(tokentrie_session_close(session));
}

static void bad_arguments(void) {
  tokentrie_session session = open_session(TOKENTRIE_AFTER_FREE);
  int32_t ids[600] = {0};
  for (size_t i = 0; i < LENGTH(ids); i++) ids[i] = 40 + (int32_t)(i % 20);
  STATUS(TOKENTRIE_ERROR_MODEL, PREFILL(session, prompt_of(ids, LENGTH(ids), -1), NULL));
  SAYS("do not fit");
  STATUS(TOKENTRIE_ERROR_MODEL, PREFILL(session, "{\"prompt\": []}", NULL));
  STATUS(TOKENTRIE_ERROR_SPEC, PREFILL(session, prompt_of(ids, 4, 64), NULL));
  SAYS("$.slot");
  STATUS(TOKENTRIE_ERROR_SPEC, PREFILL(session, "{\"prompt\": \"x\", \"slot\": -2}", NULL));
  STATUS(TOKENTRIE_ERROR_SPEC, PREFILL(session, "{\"prompt\": {}}", NULL));
  STATUS(TOKENTRIE_ERROR_SPEC, PREFILL(session, "{}", NULL));
  SAYS("prompt");
  STATUS(TOKENTRIE_ERROR_SPEC, PREFILL(session, "{\"prompt\": \"x\", \"slots\": 1}", NULL));
  STATUS(TOKENTRIE_ERROR_ARGUMENT, tokentrie_session_prefill(session, NULL, 4, NULL));
  ids[2] = INT32_MAX;
  STATUS(TOKENTRIE_ERROR_VOCAB, PREFILL(session, prompt_of(ids, 4, -1), NULL));
  ids[2] = -7;
  STATUS(TOKENTRIE_ERROR_SPEC, PREFILL(session, prompt_of(ids, 4, -1), NULL));
  SAYS("$.prompt[2]");
  prefill(session, -1);
  STATUS(TOKENTRIE_ERROR_SPEC, generate(session, "{\"max_tokens\": 0}", NULL));
  SAYS("$.max_tokens");
  STATUS(TOKENTRIE_ERROR_SPEC, generate(session, "{\"sampling\": {\"temperature\": -1}}", NULL));
  STATUS(TOKENTRIE_ERROR_SPEC, generate(session, "{\"sampling\": {\"top_p\": 1.5}}", NULL));
  OK(tokentrie_session_cancel(session)); /* nothing runs */
  OK(generate(session, "{\"max_tokens\": 5}", NULL));
  OK(tokentrie_session_close(session));
}

static void cancelled(void) {
  tokentrie_session session = open_session(TOKENTRIE_AFTER_FREE);
  prefill(session, -1);
  heard all = {.session = session, .misuses = 1};
  OK(generate(session, "{\"max_tokens\": 40}", &all));
  CHECK(all.done == 1 && all.n > 1);
  prefill(session, -1);
  heard few = {.session = session, .cancels = 1};
  OK(generate(session, "{\"max_tokens\": 40}", &few));
  CHECK(few.done == 1 && few.n == 1 && few.tokens[0] == all.tokens[0]);
  CHECK(info_of(session).finish == TOKENTRIE_FINISH_CANCELLED);
  /* It goes on where it was. */
  heard rest = {.session = session};
  OK(generate(session, "{\"max_tokens\": 39}", &rest));
  CHECK(rest.tokens[0] == all.tokens[1]);
  OK(tokentrie_session_close(session));
}

static void from_other_threads(void) {
  tokentrie_session session = open_session(TOKENTRIE_AFTER_FREE);
  prefill(session, -1);
  pthread_mutex_t pause = PTHREAD_MUTEX_INITIALIZER;
  heard there = {.session = session, .pause = &pause}, here = {.session = session};
  pthread_mutex_lock(&pause);
  pthread_t other;
  CHECK(pthread_create(&other, NULL, generate_there, &there) == 0);
  while (!info_of(session).generating) {}
  STATUS(TOKENTRIE_ERROR_BUSY, generate(session, "{\"max_tokens\": 1}", &here));
  STATUS(TOKENTRIE_ERROR_BUSY, tokentrie_session_close(session));
  CHECK(here.done == 1 && here.n == 0);
  OK(tokentrie_session_cancel(session));
  pthread_mutex_unlock(&pause);
  CHECK(pthread_join(other, NULL) == 0);
  CHECK(there.done == 1 && info_of(session).finish == TOKENTRIE_FINISH_CANCELLED);
  OK(tokentrie_session_close(session));
}

/* Two sessions on one slot take turns, and neither sees the other's text. */
static void slots(void) {
  tokentrie_session one = open_session(TOKENTRIE_AFTER_FREE), two = open_session(TOKENTRIE_AFTER_FREE);
  heard alone = {.session = one};
  prefill(one, -1);
  OK(generate(one, "{\"max_tokens\": 8}", &alone));
  prefill(one, 3);
  int32_t other[] = {50, 51, 52};
  OK(PREFILL(two, prompt_of(other, 3, 3), NULL));
  heard shared = {.session = one};
  pthread_t thread;
  heard there = {.session = two};
  CHECK(pthread_create(&thread, NULL, generate_there, &there) == 0);
  OK(generate(one, "{\"max_tokens\": 8}", &shared));
  CHECK(pthread_join(thread, NULL) == 0);
  CHECK(shared.n == alone.n && memcmp(shared.tokens, alone.tokens, alone.n * sizeof(int32_t)) == 0);
  CHECK(info_of(one).slot == 3 && there.done == 1);
  OK(tokentrie_session_close(one));
  OK(tokentrie_session_close(two));
}

/* What one session saved is the prompt of another. */
static void prefixes(void) {
  char path[] = "/tmp/tokentrie-prefix-XXXXXX";
  int file = mkstemp(path);
  CHECK(file >= 0 && close(file) == 0);
  tokentrie_session one = open_session(TOKENTRIE_AFTER_FREE), two = open_session(TOKENTRIE_AFTER_FREE);
  STATUS(TOKENTRIE_ERROR_NOT_ALLOWED, tokentrie_session_save_prefix(one, path, strlen(path)));
  SAYS("no prompt");
  size_t taken = 0;
  STATUS(TOKENTRIE_ERROR_FILE, tokentrie_session_load_prefix(two, path, strlen(path), &taken));
  SAYS("holds no prefix");
  size_t n = prefill(one, -1);
  OK(tokentrie_session_save_prefix(one, path, strlen(path)));
  OK(tokentrie_session_load_prefix(two, path, strlen(path), &taken));
  CHECK(taken == n && info_of(two).prompt_tokens == n);
  heard saved = {.session = one}, loaded = {.session = two};
  OK(generate(one, "{\"max_tokens\": 20}", &saved));
  OK(generate(two, "{\"max_tokens\": 20}", &loaded));
  CHECK(saved.n == loaded.n && memcmp(saved.tokens, loaded.tokens, saved.n * sizeof(int32_t)) == 0);
  /* The last token alone is computed again, for its logits. */
  CHECK(info_of(two).prompt_tokens_reused == n - 1);
  OK(tokentrie_session_close(one));
  OK(tokentrie_session_close(two));
  CHECK(unlink(path) == 0);
}

/* Sessions that share an engine generate together, each what it would alone. */
static void engine(int32_t batching) {
  tokentrie_session_options options = {.size = sizeof options, .n_ctx = 512, .n_threads = 1, .seed = 3, .has_seed = 1,
                                       .slots = 4, .batching = batching};
  tokentrie_session alone = open_session(TOKENTRIE_AFTER_FREE), sessions[6];
  tokentrie_engine_info info = {.size = sizeof info};
  STATUS(TOKENTRIE_NONE, tokentrie_session_engine(alone, &info));
  heard wanted = {.session = alone}, got[LENGTH(sessions)];
  prefill(alone, -1);
  OK(generate(alone, "{\"max_tokens\": 100}", &wanted));
  pthread_t threads[LENGTH(sessions)];
  memset(got, 0, sizeof got);
  for (size_t i = 0; i < LENGTH(sessions); i++) {
    OK(tokentrie_session_open(model_path, strlen(model_path), &options, &sessions[i]));
    prefill(sessions[i], -1);
    got[i].session = sessions[i];
    got[i].cancels = i == 5;
  }
  for (size_t i = 0; i < LENGTH(sessions); i++)
    CHECK(pthread_create(&threads[i], NULL, generate_there, &got[i]) == 0);
  for (size_t i = 0; i < LENGTH(sessions); i++) CHECK(pthread_join(threads[i], NULL) == 0 && got[i].done == 1);
  int same = 0;
  for (size_t i = 0; i < 5; i++)
    same += got[i].n == wanted.n && memcmp(got[i].tokens, wanted.tokens, wanted.n * sizeof(int32_t)) == 0;
  /* Rows that are computed beside others differ in their last digits. */
  CHECK(batching == TOKENTRIE_BATCHING_FREE ? same >= 3 : same == 5);
  CHECK(got[5].n <= wanted.n && got[5].tokens[0] == wanted.tokens[0]);
  OK(tokentrie_session_engine(sessions[0], &info));
  CHECK(info.slots == 4 && info.running == 0 && info.queued == 0 && info.calls == 2 * LENGTH(sessions));
  /* Four at once: fewer passes than one after another. */
  if (batching == TOKENTRIE_BATCHING_FREE) CHECK(info.passes < 5 * wanted.n);
  STATUS(TOKENTRIE_ERROR_ARGUMENT, PREFILL(sessions[0], prompt_of(wanted.tokens, 1, 3), NULL));
  SAYS("shares beginnings itself");
  for (size_t i = 0; i < LENGTH(sessions); i++) OK(tokentrie_session_close(sessions[i]));
  OK(tokentrie_session_close(alone));
  options.slots = 129;
  STATUS(TOKENTRIE_ERROR_ARGUMENT, tokentrie_session_open(model_path, strlen(model_path), &options, &alone));
  options.slots = 0, options.batching = 7;
  STATUS(TOKENTRIE_ERROR_ARGUMENT, tokentrie_session_open(model_path, strlen(model_path), &options, &alone));
  options.batching = 0, options.max_queue = 3;
  STATUS(TOKENTRIE_ERROR_ARGUMENT, tokentrie_session_open(model_path, strlen(model_path), &options, &alone));
  SAYS("without slots");
}

/* Text goes on after the leaf, chosen as free text is. */
static void free_text(void) {
  tokentrie_session session = open_session(TOKENTRIE_AFTER_FREE);
  prefill(session, -1);
  tokentrie_trie trie = labels(session);
  OK(tokentrie_session_set_trie(session, trie, TOKENTRIE_MODE_GREEDY));
  heard to = {.session = session};
  OK(generate(session, "{\"max_tokens\": 24, \"free_sampling\": {\"temperature\": 0.9, \"top_p\": 0.95}}", &to));
  const char *leaf = strstr(result_of(session), "\"leaf\":{\"index\":");
  CHECK(leaf != NULL && to.done == 1);
  const char *name = strstr(leaf, "\"name\":\"") + 8;
  size_t n = strcspn(name, "\"");
  CHECK(n >= 7 && to.n_text >= n && memcmp(to.text, name, n) == 0);
  OK(tokentrie_trie_free(trie));
  OK(tokentrie_session_close(session));
}

/* The number after a name in the last result. */
static double number_of(tokentrie_session session, const char *name) {
  const char *at = strstr(result_of(session), name);
  CHECK(at != NULL);
  return strtod(at + strlen(name), NULL);
}

#define CHOOSE(session, request) tokentrie_session_choose(session, request, strlen(request))

static void choices(void) {
  tokentrie_session session = open_session(TOKENTRIE_AFTER_FREE);
  const char after_text[] = "{\"prompt\": \"Label the review: positive, negative or neutral.\\n"
                            "The service is so great.\\nLabel: \","
                            " \"choices\": [\"positive\", \"negative\", \"neutral\"]}";
  OK(CHOOSE(session, after_text));
  const char *names[] = {"positive", "negative", "neutral"};
  double sum = 0, p[3];
  const char *at = strstr(result_of(session), "\"probabilities\":{");
  CHECK(at != NULL && strstr(result_of(session), "\"names\":[\"positive\",\"negative\",\"neutral\"]"));
  at += strlen("\"probabilities\":{");
  for (int i = 0; i < 3; i++) {
    char *end;
    CHECK(strncmp(at + 1, names[i], strlen(names[i])) == 0);
    sum += p[i] = strtod(at + strlen(names[i]) + 3, &end);
    CHECK(*end == (i < 2 ? ',' : '}'));
    at = end + 1;
  }
  CHECK(fabs(sum - 1) < 1e-9);
  int best = (int)number_of(session, "\"index\":");
  double mass = number_of(session, "\"mass\":");
  CHECK(best >= 0 && best < 3 && mass > 0 && mass <= 1);
  for (int i = 0; i < 3; i++) CHECK(p[i] <= p[best]);
  printf("choice: positive %.3f, negative %.3f, neutral %.3f, %.0f forward passes\n", p[0], p[1], p[2],
         number_of(session, "\"forward_passes\":"));
  STATUS(TOKENTRIE_ERROR_SET, CHOOSE(session, "{\"prompt\": \"x\", \"choices\": [\"positive\", \"positive\"]}"));
  STATUS(TOKENTRIE_ERROR_SPEC, CHOOSE(session, "{\"prompt\": \"x\", \"choices\": []}"));
  /* After ids, of a set that was made before. */
  int32_t ids[256];
  size_t n = prefill(session, -1);
  tokentrie_trie trie = labels(session);
  OK(tokentrie_session_set_trie(session, trie, TOKENTRIE_MODE_GREEDY));
  OK(CHOOSE(session, "{}"));
  CHECK(strstr(result_of(session), "\"certain\":true") && strstr(result_of(session), "\"neutral\""));
  OK(tokentrie_session_clear_token_trie(session));
  OK(tokentrie_trie_free(trie));
  /* Where a token crosses the boundary to the prefix, the set begins before that token. */
  trie = set_of(session, "{\"choice\": [\"blue\", \"red\"], \"prefix\": \"The sky is \"}");
  tokentrie_trie_info shape = {.size = sizeof shape};
  OK(tokentrie_trie_get_info(trie, &shape));
  CHECK(shape.leaves == 2);
  OK(tokentrie_trie_free(trie));
  OK(tokentrie_session_tokenize(session, PROMPT, strlen(PROMPT), 1, 0, ids, LENGTH(ids), &n));
  tokentrie_vocab vocab = 0;
  OK(tokentrie_session_vocab(session, &vocab));
  uint8_t bytes[512];
  OK(tokentrie_vocab_bytes(vocab, ids, n, bytes, sizeof bytes, &n));
  CHECK(n >= strlen(PROMPT) && memcmp(bytes + n - strlen(PROMPT), PROMPT, strlen(PROMPT)) == 0);
  OK(tokentrie_session_close(session));
  OK(tokentrie_vocab_free(vocab)); /* it outlives the session */
}

/* Requests: every option by its name, and what came of them. */
static void requests(void) {
  tokentrie_session session = open_session(TOKENTRIE_AFTER_STOP);
  char json[64];
  size_t n = 0;
  STATUS(TOKENTRIE_NONE, tokentrie_session_result(session, json, sizeof json, &n));
  const char draw[] = "{\"prompt\": \"The sky is \", \"constraint\": {\"choice\": [\"blue\", \"red\", \"black\"]},"
                      " \"sampling\": {\"temperature\": 3, \"min_p\": 0, \"seed\": 5}, \"timeout\": 60}";
  heard first = {.session = session}, again = {.session = session};
  OK(tokentrie_session_generate(session, draw, sizeof draw - 1, listen, &first));
  CHECK(first.done == 1 && first.n_text >= 3 && info_of(session).finish == TOKENTRIE_FINISH_SPAN);
  char said[64];
  snprintf(said, sizeof said, "\"value\":\"%.*s\"", (int)first.n_text, first.text);
  CHECK(strstr(result_of(session), said) && strstr(result_of(session), "\"finish\":\"span\""));
  STATUS(TOKENTRIE_ERROR_BUFFER, tokentrie_session_result(session, json, 3, &n));
  OK(tokentrie_session_generate(session, draw, sizeof draw - 1, listen, &again));
  CHECK(again.n_text == first.n_text && memcmp(again.text, first.text, first.n_text) == 0);
  /* It goes on after that, and follows nothing any more. */
  heard more = {.session = session};
  OK(tokentrie_session_generate(session, "{\"max_tokens\": 3}", 17, listen, &more));
  CHECK(more.n == 3 || info_of(session).finish == TOKENTRIE_FINISH_END_OF_GENERATION);

  const char form[] = "{\"prompt\": \"A pet: \", \"constraint\": {\"form\": [\"a \", {\"slot\": \"pet\", \"value\":"
                      " {\"choice\": [\"cat\", \"dog\"]}}]}, \"exact\": true, \"probabilities\": true}";
  OK(tokentrie_session_start(session, form, sizeof form - 1));
  char last[8192];
  for (int32_t token = 0, is_done = 0; !is_done;) {
    OK(tokentrie_session_next(session, -1, &token, last, sizeof last, &n, &is_done));
  }
  CHECK(strstr(result_of(session), "\"probabilities\":{\"pet\":{\"cat\":"));
  CHECK(strstr(result_of(session), "\"finish\":\"span\""));

  /* What a user should hear of the constraint of a request, until the next. */
  const char hear[] = "{\"prompt\": \"It is \", \"max_tokens\": 2, \"constraint\":"
                      " {\"grammar\": \"a : \\\"x\\\" ; unused : \\\"x\\\" ;\", \"lenient\": true}}";
  heard warned = {.session = session}, silent = {.session = session};
  OK(tokentrie_session_generate(session, hear, sizeof hear - 1, listen, &warned));
  CHECK(strstr(result_of(session), "\"warnings\":[\"grammar, "));
  OK(tokentrie_session_generate(session, "{\"max_tokens\": 1}", 17, listen, &silent));
  CHECK(strstr(result_of(session), "\"warnings\":[]"));

  const char late[] = "{\"prompt\": \"On and on \", \"max_tokens\": 4000, \"timeout\": 0}";
  heard none = {.session = session};
  OK(tokentrie_session_generate(session, late, sizeof late - 1, listen, &none));
  CHECK(none.done == 1 && none.n == 0 && info_of(session).finish == TOKENTRIE_FINISH_TIMED_OUT);

  const char wrong[] = "{\"prompt\": \"x\", \"max_token\": 3}";
  heard never = {.session = session};
  STATUS(TOKENTRIE_ERROR_SPEC, tokentrie_session_generate(session, wrong, sizeof wrong - 1, listen, &never));
  SAYS("$.max_token: unknown field");
  STATUS(TOKENTRIE_ERROR_ARGUMENT, tokentrie_session_generate(session, NULL, 4, listen, &never));
  STATUS(TOKENTRIE_ERROR_ARGUMENT,
         tokentrie_session_generate(session, "{\"prompt\": \"x\", \"end_tokens\": [1]}", 34, listen, &never));
  CHECK(never.done == 3 && never.n == 0);

  const char ask[] = "{\"prompt\": \"It is \", \"choices\": {\"integer\": {\"min\": 1, \"max\": 3}}, \"top\": 1}";
  OK(tokentrie_session_choose(session, ask, sizeof ask - 1));
  CHECK(strstr(result_of(session), "\"names\":[") && strstr(result_of(session), "\"mass_bounds\":["));
  STATUS(TOKENTRIE_ERROR_SPEC, tokentrie_session_choose(session, "{\"prompt\": \"x\"}", 15));
  SAYS("the field \"choices\" is missing");
  const char slow[] = "{\"prompt\": \"another\", \"choices\": [\"a\", \"b\"], \"timeout\": 0}";
  STATUS(TOKENTRIE_ERROR_CANCELLED, tokentrie_session_choose(session, slow, sizeof slow - 1));
  SAYS("the timeout of 0 s was over");

  const char odds[] =
      "{\"prompt\": \"It is \", \"constraint\": {\"integer\": {\"min\": 1, \"max\": 3}}, \"text\": \"2\"}";
  OK(tokentrie_session_probability(session, odds, sizeof odds - 1));
  CHECK(strstr(result_of(session), "\"exact\":true") && strstr(result_of(session), "\"share_bounds\":["));
  CHECK(strstr(result_of(session), "\"timed_out\":false") && strstr(result_of(session), "\"warnings\":[]"));
  STATUS(TOKENTRIE_ERROR_SPEC, tokentrie_session_probability(session, "{\"prompt\": \"x\"}", 15));
  SAYS("the field \"constraint\" is missing");
  const char unknown[] = "{\"prompt\": \"x\", \"constraint\": {\"regex\": \"a\"}, \"rows\": 1}";
  STATUS(TOKENTRIE_ERROR_SPEC, tokentrie_session_probability(session, unknown, sizeof unknown - 1));
  SAYS("$.rows: unknown field");
  const char over[] = "{\"prompt\": \"third\", \"constraint\": {\"regex\": \"a*\"}, \"timeout\": 0}";
  OK(tokentrie_session_probability(session, over, sizeof over - 1));
  CHECK(strstr(result_of(session), "\"timed_out\":true") && strstr(result_of(session), "\"upper\":1.0"));

  const char decide[] =
      "{\"state\": \"The lamp is on.\", \"questions\": {\"on\": {\"type\": \"predicate\"}, \"colour\": "
      "{\"type\": \"choice\", \"options\": [\"red\", true]}}}";
  OK(tokentrie_session_decide(session, decide, sizeof decide - 1));
  CHECK(strstr(result_of(session), "[{\"answers\":{\"on\":{\"type\":\"predicate\",\"value\":"));
  CHECK(strstr(result_of(session), "\"probabilities\":[{\"value\":\"red\",\"probability\":"));
  CHECK(strstr(result_of(session), ",{\"value\":true,\"probability\":") && strstr(result_of(session), "\"mass\":"));
  const char nothing[] = "{\"state\": \"s\", \"questions\": {}}";
  STATUS(TOKENTRIE_ERROR_SPEC, tokentrie_session_decide(session, nothing, sizeof nothing - 1));
  SAYS("$.questions: there is no question");
  const char slow_one[] = "{\"state\": \"s\", \"questions\": {\"on\": {\"type\": \"predicate\"}}, \"timeout\": 0}";
  STATUS(TOKENTRIE_ERROR_CANCELLED, tokentrie_session_decide(session, slow_one, sizeof slow_one - 1));
  SAYS("the timeout of 0 s was over before there were answers");
  OK(tokentrie_session_close(session));
}

/* As the agent runtime does it: open, prefill, set, generate, clear, close. */
static void other_names(void) {
  CHECK(eliza_inference_llm_stream_supported() == 1);
  void *handle = eliza_inference_llm_stream_open(model_path, 1 << 30, 1, 0);
  CHECK(handle != NULL);
  int32_t ids[256];
  size_t n = 0;
  tokentrie_session session = (tokentrie_session)(uintptr_t)handle;
  OK(tokentrie_session_tokenize(session, PROMPT, strlen(PROMPT), 1, 0, ids, LENGTH(ids), &n));
  CHECK(eliza_inference_llm_stream_prefill(handle, ids, -1, -1) == -1);
  CHECK(eliza_inference_llm_stream_prefill(handle, ids, (int32_t)n, -1) == (int32_t)n);
  tokentrie_trie trie = labels(session);
  OK(tokentrie_session_set_trie(session, trie, TOKENTRIE_MODE_GREEDY));
  heard to = {.session = session};
  CHECK(eliza_inference_llm_stream_generate(handle, 12, 0.0f, 1.0f, listen, &to) == 0);
  CHECK(to.done == 1);
  CHECK(eliza_inference_llm_stream_generate(handle, -1, 0.0f, 1.0f, listen, &to) == -1 && to.done == 2);
  CHECK(eliza_inference_set_token_trie(handle, "[]", 2, 0) < 0);
  CHECK(eliza_inference_clear_token_trie(handle) == 0 && eliza_inference_clear_token_trie(handle) == 0);

  /* The pull form gives the same tokens. */
  CHECK(eliza_inference_llm_stream_prefill(handle, ids, (int32_t)n, 0) == (int32_t)n);
  OK(tokentrie_session_set_trie(session, trie, TOKENTRIE_MODE_GREEDY));
  OK(START(session, "{\"max_tokens\": 12}"));
  size_t pulled = 0, n_tokens = 0;
  int32_t step[4], drafted = 9, accepted = 9, status = 0;
  char text[64], *error = NULL;
  while ((status = eliza_inference_llm_stream_next(handle, step, 4, &n_tokens, text, sizeof text, &drafted, &accepted,
                                                   &error)) == 0) {
    CHECK(n_tokens >= 1 && drafted == 0 && accepted == 0);
    for (size_t i = 0; i < n_tokens; i++) CHECK(step[i] == to.tokens[pulled++]);
  }
  for (size_t i = 0; i < n_tokens; i++) CHECK(step[i] == to.tokens[pulled++]);
  CHECK(status == 1 && pulled == to.n && error == NULL);
  OK(tokentrie_trie_free(trie));
  eliza_inference_llm_stream_cancel(handle);
  eliza_inference_llm_stream_close(handle);
  eliza_inference_llm_stream_close(handle);
  eliza_inference_llm_stream_close(NULL);
  CHECK(eliza_inference_llm_stream_next(handle, step, 4, &n_tokens, text, sizeof text, NULL, NULL, &error) < 0);
  CHECK(error != NULL && strstr(error, "freed before") != NULL);
  eliza_inference_free_string(error);
  eliza_inference_free_string(NULL);
}

int main(int count, char **arguments) {
  if (count != 2) return 2;
  program_path = arguments[0];
  model_path = arguments[1];
  CHECK(tokentrie_features() & TOKENTRIE_FEATURE_LLAMA);
  bad_files();
  a_leaf();
  a_rule();
  chats();
  payloads();
  bad_arguments();
  cancelled();
  from_other_threads();
  slots();
  prefixes();
  engine(TOKENTRIE_BATCHING_FREE);
  engine(TOKENTRIE_BATCHING_FIXED);
  free_text();
  choices();
  requests();
  other_names();
  /* The end of the process waits for a generation that runs. */
  tokentrie_session last = open_session(TOKENTRIE_AFTER_FREE);
  prefill(last, -1);
  OK(START(last, "{\"max_tokens\": 400}"));
  puts("sessions: everything as promised");
  return 0;
}
