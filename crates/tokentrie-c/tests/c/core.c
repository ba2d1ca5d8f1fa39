/* Everything that the library does without llama.cpp, from C; under valgrind and the address sanitizer too. */
#include "check.h"

#include <math.h>
#include <pthread.h>
#include <unistd.h>

enum { N_VOCAB = 100 };

static const char PAYLOAD[] =
    "{\"modelId\": \"m\", \"descriptors\": ["
    "{\"path\": \"action\", \"leaves\": [{\"name\": \"REPLY\", \"tokens\": [5, 6]},"
    " {\"name\": \"REPLY_THREAD\", \"tokens\": [5, 6, 7]}, {\"name\": \"STOP\", \"tokens\": [9]}]},"
    "{\"path\": \"color\", \"leaves\": [{\"name\": \"r\\u00f6d\", \"tokens\": [40, 41, 42]}]}]}";

static tokentrie_vocab vocabulary(void) {
  const int32_t ends[] = {2, 0, 2};
  tokentrie_vocab vocab = 0;
  OK(tokentrie_vocab_new(N_VOCAB, ends, LENGTH(ends), &vocab));
  return vocab;
}

static tokentrie_trie tries(tokentrie_vocab vocab) {
  tokentrie_trie trie = 0;
  OK(tokentrie_trie_from_json(PAYLOAD, strlen(PAYLOAD), vocab, 0, &trie));
  return trie;
}

static void vocabularies(void) {
  tokentrie_vocab vocab = vocabulary(), pieces = 0;
  size_t n = 0;
  int32_t ids[4] = {-1, -1, -1, -1};
  OK(tokentrie_vocab_size(vocab, &n));
  CHECK(n == N_VOCAB);
  STATUS(TOKENTRIE_ERROR_BUFFER, tokentrie_vocab_end_of_generation(vocab, NULL, 0, &n));
  CHECK(n == 2);
  STATUS(TOKENTRIE_ERROR_BUFFER, tokentrie_vocab_end_of_generation(vocab, ids, 1, &n));
  CHECK(ids[0] == -1);
  OK(tokentrie_vocab_end_of_generation(vocab, ids, 4, &n));
  CHECK(n == 2 && ids[0] == 0 && ids[1] == 2 && ids[2] == -1);
  STATUS(TOKENTRIE_ERROR_VOCAB, tokentrie_vocab_bytes(vocab, ids, 2, NULL, 0, &n));
  SAYS("without the bytes");

  const uint8_t bytes[] = "abbcc<end>";
  const uint64_t ends[] = {1, 3, 5, 10}, wrong[] = {1, 3, 2, 10}, past[] = {1, 3, 5, 1000000};
  const uint8_t kinds[] = {0, 0, 1, 2}, odd[] = {0, 0, 3, 2};
  OK(tokentrie_vocab_from_pieces(bytes, 10, ends, kinds, 4, &pieces));
  const int32_t text[] = {1, 0, 1};
  uint8_t out[8];
  OK(tokentrie_vocab_bytes(pieces, text, 3, out, sizeof out, &n));
  CHECK(n == 5 && memcmp(out, "bbabb", 5) == 0);
  OK(tokentrie_vocab_end_of_generation(pieces, ids, 4, &n));
  CHECK(n == 1 && ids[0] == 3);
  const int32_t outside[] = {4};
  STATUS(TOKENTRIE_ERROR_VOCAB, tokentrie_vocab_bytes(pieces, outside, 1, out, sizeof out, &n));
  STATUS(TOKENTRIE_ERROR_ARGUMENT, tokentrie_vocab_from_pieces(bytes, 10, wrong, kinds, 4, &pieces));
  SAYS("[2] is 2");
  STATUS(TOKENTRIE_ERROR_ARGUMENT, tokentrie_vocab_from_pieces(bytes, 10, past, kinds, 4, &pieces));
  STATUS(TOKENTRIE_ERROR_ARGUMENT, tokentrie_vocab_from_pieces(bytes, 10, ends, odd, 4, &pieces));
  STATUS(TOKENTRIE_ERROR_ARGUMENT, tokentrie_vocab_new(0, NULL, 0, &vocab));
  STATUS(TOKENTRIE_ERROR_ARGUMENT, tokentrie_vocab_new((size_t)-1, NULL, 0, &vocab));
  STATUS(TOKENTRIE_ERROR_VOCAB, tokentrie_vocab_new(2, ids + 0, 1, &vocab));
  OK(tokentrie_vocab_free(pieces));
  OK(tokentrie_vocab_free(vocab));
}

static void sets(void) {
  tokentrie_vocab vocab = vocabulary();
  tokentrie_trie trie = tries(vocab), color = 0;
  tokentrie_trie_info info = {.size = sizeof info};
  OK(tokentrie_trie_get_info(trie, &info));
  CHECK(info.tries == 2 && info.leaves == 3 && info.nodes == 5 && info.max_token == 9 && info.max_depth == 3);
  info.size = 12;
  info.leaves = 77;
  STATUS(TOKENTRIE_OK, tokentrie_trie_get_info(trie, &info));
  CHECK((uint32_t)info.leaves == 3 && info.size == 12);
  info.size = 0;
  STATUS(TOKENTRIE_ERROR_ARGUMENT, tokentrie_trie_get_info(trie, &info));
  SAYS("set it to sizeof *info");

  char text[32];
  size_t n = 0;
  OK(tokentrie_trie_path(trie, 1, text, sizeof text, &n));
  CHECK(n == 5 && memcmp(text, "color", 5) == 0);
  STATUS(TOKENTRIE_ERROR_ARGUMENT, tokentrie_trie_path(trie, 2, text, sizeof text, &n));
  OK(tokentrie_trie_select(trie, "color", 5, &color));
  STATUS(TOKENTRIE_ERROR_NOT_ALLOWED, tokentrie_trie_select(trie, "colour", 6, &color));
  OK(tokentrie_trie_leaf_name(color, 0, text, sizeof text, &n));
  CHECK(n == 4 && memcmp(text, "r\xc3\xb6" "d", 4) == 0);

  const int32_t path[] = {5, 6, 7}, stray[] = {5, 8};
  int32_t ids[8];
  OK(tokentrie_trie_children(trie, NULL, 0, ids, 8, &n));
  CHECK(n == 2 && ids[0] == 5 && ids[1] == 9);
  OK(tokentrie_trie_children(trie, path, 3, ids, 8, &n));
  CHECK(n == 0);
  STATUS(TOKENTRIE_ERROR_NOT_ALLOWED, tokentrie_trie_children(trie, stray, 2, ids, 8, &n));
  SAYS("token 8 at position 1");
  OK(tokentrie_trie_forced(trie, path, 1, ids, 8, &n));
  CHECK(n == 1 && ids[0] == 6);
  uint32_t leaf = 99;
  OK(tokentrie_trie_find(trie, path, 2, &leaf));
  CHECK(leaf == 0);
  STATUS(TOKENTRIE_NONE, tokentrie_trie_find(trie, path, 1, &leaf));
  OK(tokentrie_trie_leaf_tokens(trie, 1, ids, 8, &n));
  CHECK(n == 3 && memcmp(ids, path, sizeof path) == 0);
  STATUS(TOKENTRIE_ERROR_ARGUMENT, tokentrie_trie_leaf_tokens(trie, 3, ids, 8, &n));
  STATUS(TOKENTRIE_ERROR_ARGUMENT, tokentrie_trie_leaf_name(trie, UINT32_MAX, text, sizeof text, &n));

  /* Sequences, with names and without. */
  const int32_t tokens[] = {1, 2, 1, 3};
  const uint64_t ends[] = {2, 4}, name_ends[] = {1, 3}, inside[] = {2, 3};
  tokentrie_trie named = 0, plain = 0;
  OK(tokentrie_trie_from_sequences(tokens, 4, ends, "bcc", 3, name_ends, 2, &named));
  OK(tokentrie_trie_leaf_name(named, 1, text, sizeof text, &n));
  CHECK(n == 2 && memcmp(text, "cc", 2) == 0);
  OK(tokentrie_trie_from_sequences(tokens, 4, ends, NULL, 0, NULL, 2, &plain));
  STATUS(TOKENTRIE_NONE, tokentrie_trie_leaf_name(plain, 1, text, sizeof text, &n));
  CHECK(n == 0);
  STATUS(TOKENTRIE_ERROR_TEXT, tokentrie_trie_from_sequences(tokens, 4, ends, "a\xc3\xb6", 3, inside, 2, &plain));
  const int32_t negative[] = {1, -2, 1, 3};
  STATUS(TOKENTRIE_ERROR_VOCAB, tokentrie_trie_from_sequences(negative, 4, ends, NULL, 0, NULL, 2, &plain));
  SAYS("tokens[1]");
  STATUS(TOKENTRIE_ERROR_SET, tokentrie_trie_from_sequences(NULL, 0, NULL, NULL, 0, NULL, 0, &plain));

  /* Files. */
  char file[] = "/tmp/tokentrie-c-XXXXXX";
  int descriptor = mkstemp(file);
  CHECK(descriptor >= 0);
  tokentrie_trie opened = 0;
  OK(tokentrie_trie_save(named, file, strlen(file), vocab));
  OK(tokentrie_trie_open(file, strlen(file), 1, &opened));
  OK(tokentrie_trie_find(opened, tokens + 2, 2, &leaf));
  CHECK(leaf == 1);
  OK(tokentrie_trie_free(opened));
  STATUS(TOKENTRIE_ERROR_FILE, tokentrie_trie_open("/nowhere/x", 10, 0, &opened));
  SAYS("/nowhere/x");
  remove(file);

  /* The binary form. */
  uint8_t binary[256];
  OK(tokentrie_trie_to_rtkt(trie, binary, sizeof binary, &n));
  tokentrie_trie decoded = 0;
  OK(tokentrie_trie_from_rtkt(binary, n, &decoded));
  OK(tokentrie_trie_path(decoded, 0, text, sizeof text, &n));
  CHECK(n == 6 && memcmp(text, "action", 6) == 0);
  OK(tokentrie_trie_find(decoded, path, 2, &leaf));
  STATUS(TOKENTRIE_ERROR_PAYLOAD, tokentrie_trie_from_rtkt(binary, 20, &decoded));
  SAYS("truncated");

  OK(tokentrie_trie_free(decoded));
  OK(tokentrie_trie_free(named));
  OK(tokentrie_trie_free(plain));
  OK(tokentrie_trie_free(color));
  OK(tokentrie_trie_free(trie));
  OK(tokentrie_vocab_free(vocab));
}

static void payloads(void) {
  tokentrie_vocab vocab = vocabulary();
  tokentrie_trie trie = 0;
  const char *bad[] = {"", "{", "[]", "{\"descriptors\": []}", "{\"descriptors\": [{\"path\": \"a\", \"leaves\": 5}]}"};
  for (size_t i = 0; i < LENGTH(bad); i++) {
    STATUS(TOKENTRIE_ERROR_PAYLOAD, tokentrie_trie_from_json(bad[i], strlen(bad[i]), vocab, 0, &trie));
    CHECK(strlen(tokentrie_last_error()) > 20);
  }
  CHECK(trie == 0);
  /* Where, and with which value. */
  const char *wrong = "{\"descriptors\": [{\"path\": \"a\", \"leaves\": [{\"name\": \"x\", \"tokens\": [1.5]}]}]}";
  STATUS(TOKENTRIE_ERROR_PAYLOAD, tokentrie_trie_from_json(wrong, strlen(wrong), vocab, 0, &trie));
  SAYS("descriptors[0].leaves[0].tokens[0]");
  const char *outside = "{\"descriptors\": [{\"path\": \"a\", \"leaves\": [{\"name\": \"x\", \"tokens\": [100]}]}]}";
  STATUS(TOKENTRIE_ERROR_PAYLOAD, tokentrie_trie_from_json(outside, strlen(outside), vocab, 0, &trie));
  OK(tokentrie_trie_from_json(outside, strlen(outside), 0, 0, &trie));
  /* The length decides, not a zero: what comes after it is not read. */
  char *exact = malloc(strlen(PAYLOAD));
  memcpy(exact, PAYLOAD, strlen(PAYLOAD));
  tokentrie_trie same = 0;
  OK(tokentrie_trie_from_json(exact, strlen(PAYLOAD), vocab, 0, &same));
  OK(tokentrie_trie_free(same));
  free(exact);
  /* A gigabyte is refused before it is looked at. */
  STATUS(TOKENTRIE_ERROR_LIMIT, tokentrie_trie_from_json(PAYLOAD, (size_t)1 << 30, vocab, 0, &same));
  STATUS(TOKENTRIE_ERROR_TEXT, tokentrie_trie_select(trie, "\xff", 1, &same));

  tokentrie_cache cache = 0;
  tokentrie_trie cached[3];
  OK(tokentrie_cache_new(1, &cache));
  for (size_t i = 0; i < 2; i++) OK(tokentrie_trie_from_json(PAYLOAD, strlen(PAYLOAD), vocab, cache, &cached[i]));
  OK(tokentrie_trie_from_json(outside, strlen(outside), 0, cache, &cached[2]));
  tokentrie_cache_stats stats = {.size = sizeof stats};
  OK(tokentrie_cache_get_stats(cache, &stats));
  CHECK(stats.hits == 1 && stats.misses == 2 && stats.evictions == 1 && stats.held == 1 && stats.capacity == 1);
  OK(tokentrie_cache_clear(cache));
  OK(tokentrie_cache_free(cache));
  for (size_t i = 0; i < 3; i++) OK(tokentrie_trie_free(cached[i]));
  STATUS(TOKENTRIE_ERROR_ARGUMENT, tokentrie_cache_new((size_t)-1, &cache));
  OK(tokentrie_trie_free(trie));
  OK(tokentrie_vocab_free(vocab));
}

/* Bytes of memory that the process has; 0 where nobody says. */
static long resident(void) {
  long total = 0, pages = 0;
  FILE *file = fopen("/proc/self/statm", "r");
  if (file == NULL) return 0;
  if (fscanf(file, "%ld %ld", &total, &pages) != 2) pages = 0;
  fclose(file);
  return pages * sysconf(_SC_PAGESIZE);
}

static void samplers(void) {
  tokentrie_vocab vocab = vocabulary();
  tokentrie_trie trie = tries(vocab);
  tokentrie_sampler sampler = 0, copy = 0;
  const int32_t quote[] = {3};
  OK(tokentrie_sampler_new(trie, vocab, NULL, quote, 1, &sampler));
  /* What a sampler was made of may go. */
  OK(tokentrie_trie_free(trie));
  OK(tokentrie_vocab_free(vocab));

  int32_t ids[8], what = -1, token = -1, state = -1;
  size_t n = 0, depth = 99;
  OK(tokentrie_sampler_allowed(sampler, ids, 8, &n, &what));
  CHECK(n == 2 && ids[0] == 5 && ids[1] == 9 && what == TOKENTRIE_ALLOWED_ONLY);
  STATUS(TOKENTRIE_ERROR_BUFFER, tokentrie_sampler_allowed(sampler, ids, 1, &n, &what));
  CHECK(n == 2);

  float row[N_VOCAB], masked[N_VOCAB];
  for (int i = 0; i < N_VOCAB; i++) row[i] = (float)i / 10;
  row[9] = -1.0f;
  OK(tokentrie_sampler_sample(sampler, row, N_VOCAB, &token));
  CHECK(token == 5);
  STATUS(TOKENTRIE_ERROR_ROW, tokentrie_sampler_sample(sampler, row, N_VOCAB - 1, &token));
  memcpy(masked, row, sizeof row);
  OK(tokentrie_sampler_apply(sampler, masked, N_VOCAB));
  for (int i = 0; i < N_VOCAB; i++) CHECK(i == 5 || i == 9 ? masked[i] == row[i] : isinf(masked[i]) && masked[i] < 0);
  uint32_t words[4];
  OK(tokentrie_sampler_bitmask(sampler, words, 4));
  CHECK(words[0] == ((1u << 5) | (1u << 9)) && words[1] == 0 && words[3] == 0);
  STATUS(TOKENTRIE_ERROR_ROW, tokentrie_sampler_bitmask(sampler, words, 3));

  /* A branch is one call: 5, then 6 is forced. A buffer that is too small changes nothing. */
  STATUS(TOKENTRIE_ERROR_BUFFER, tokentrie_sampler_advance(sampler, row, N_VOCAB, ids, 1, &n));
  CHECK(n == 2);
  OK(tokentrie_sampler_state(sampler, &state, &depth));
  CHECK(state == TOKENTRIE_STATE_ACTIVE && depth == 0);
  OK(tokentrie_sampler_clone(sampler, &copy));
  OK(tokentrie_sampler_advance(sampler, row, N_VOCAB, ids, 8, &n));
  CHECK(n == 2 && ids[0] == 5 && ids[1] == 6);
  OK(tokentrie_sampler_advance(copy, row, N_VOCAB, ids, 2, &n));
  CHECK(n == 2);
  /* 7 goes on, 3 ends the leaf. */
  OK(tokentrie_sampler_allowed(sampler, ids, 8, &n, &what));
  CHECK(n == 2 && ids[0] == 3 && ids[1] == 7);
  const int32_t stray[] = {7, 8}, end[] = {3}, outside[] = {100};
  STATUS(TOKENTRIE_ERROR_NOT_ALLOWED, tokentrie_sampler_accept(sampler, stray, 2));
  STATUS(TOKENTRIE_ERROR_VOCAB, tokentrie_sampler_accept(sampler, outside, 1));
  uint32_t leaf = 99;
  char name[16];
  STATUS(TOKENTRIE_NONE, tokentrie_sampler_leaf(sampler, &leaf, name, sizeof name, &n));
  OK(tokentrie_sampler_accept(sampler, end, 1));
  STATUS(TOKENTRIE_ERROR_BUFFER, tokentrie_sampler_leaf(sampler, &leaf, name, 2, &n));
  CHECK(n == 5 && leaf == 99);
  OK(tokentrie_sampler_leaf(sampler, &leaf, name, sizeof name, &n));
  CHECK(leaf == 0 && n == 5 && memcmp(name, "REPLY", 5) == 0);
  OK(tokentrie_sampler_allowed(sampler, ids, 8, &n, &what));
  CHECK(n == 0 && what == TOKENTRIE_ALLOWED_ALL);
  STATUS(TOKENTRIE_ERROR_NOT_ALLOWED, tokentrie_sampler_rollback(sampler, 4));
  OK(tokentrie_sampler_rollback(sampler, 3));
  OK(tokentrie_sampler_activate(sampler, "color", 5));
  OK(tokentrie_sampler_forced(sampler, ids, 8, &n));
  CHECK(n == 4 && ids[0] == 40 && ids[3] == 3);
  STATUS(TOKENTRIE_ERROR_NOT_ALLOWED, tokentrie_sampler_activate(sampler, "colour", 6));
  OK(tokentrie_sampler_deactivate(sampler));
  OK(tokentrie_sampler_state(sampler, &state, NULL));
  CHECK(state == TOKENTRIE_STATE_IDLE);
  OK(tokentrie_sampler_reset(sampler));
  OK(tokentrie_sampler_state(sampler, NULL, &depth));
  CHECK(depth == 0);
  OK(tokentrie_sampler_free(copy));
  OK(tokentrie_sampler_free(sampler));
}

static void options(void) {
  tokentrie_vocab vocab = vocabulary();
  tokentrie_trie trie = tries(vocab);
  tokentrie_sampler sampler = 0;
  tokentrie_sampler_options draw = {.size = sizeof draw, .mode = TOKENTRIE_MODE_SAMPLED, .temperature = 1.0f,
                                    .seed = 7, .has_seed = 1, .after = TOKENTRIE_AFTER_STOP};
  OK(tokentrie_sampler_new(trie, vocab, &draw, NULL, 0, &sampler));
  float row[N_VOCAB] = {0};
  int seen[2] = {0, 0};
  for (int i = 0; i < 200; i++) {
    int32_t token = -1;
    OK(tokentrie_sampler_sample(sampler, row, N_VOCAB, &token));
    CHECK(token == 5 || token == 9);
    seen[token == 9]++;
  }
  CHECK(seen[0] > 50 && seen[1] > 50);
  OK(tokentrie_sampler_free(sampler));
  draw.mode = 2;
  STATUS(TOKENTRIE_ERROR_ARGUMENT, tokentrie_sampler_new(trie, vocab, &draw, NULL, 0, &sampler));
  SAYS("mode is 2");
  draw.mode = 1, draw.after = -1;
  STATUS(TOKENTRIE_ERROR_ARGUMENT, tokentrie_sampler_new(trie, vocab, &draw, NULL, 0, &sampler));
  draw.after = 0, draw.temperature = NAN;
  STATUS(TOKENTRIE_ERROR_ARGUMENT, tokentrie_sampler_new(trie, vocab, &draw, NULL, 0, &sampler));
  draw.temperature = 1.0f, draw.typical_p = 1.5f;
  STATUS(TOKENTRIE_ERROR_ARGUMENT, tokentrie_sampler_new(trie, vocab, &draw, NULL, 0, &sampler));
  SAYS("typical_p is 1.5: it must be from 0 to 1");
  /* Of equal tokens each surprises as much as the mean: the first is enough. */
  draw.typical_p = 0.25f;
  OK(tokentrie_sampler_new(trie, vocab, &draw, NULL, 0, &sampler));
  for (int i = 0; i < 50; i++) {
    int32_t token = -1;
    OK(tokentrie_sampler_sample(sampler, row, N_VOCAB, &token));
    CHECK(token == 5);
  }
  OK(tokentrie_sampler_free(sampler));
  /* In free text after a value the same token is best again and again, until it is penalised. */
  row[20] = 1.0f;
  for (int penalised = 0; penalised < 2; penalised++) {
    tokentrie_sampler_options greedy = {.size = sizeof greedy, .presence_penalty = penalised ? 1.5f : 0.0f};
    OK(tokentrie_sampler_new(trie, vocab, &greedy, NULL, 0, &sampler));
    int state = TOKENTRIE_STATE_ACTIVE;
    int32_t token = -1;
    /* STOP, behind which no longer value goes on. */
    row[9] = 2.0f;
    OK(tokentrie_sampler_sample(sampler, row, N_VOCAB, &token));
    OK(tokentrie_sampler_accept(sampler, &token, 1));
    OK(tokentrie_sampler_state(sampler, &state, NULL));
    CHECK(token == 9 && state == TOKENTRIE_STATE_COMPLETE);
    row[9] = 0.0f;
    OK(tokentrie_sampler_sample(sampler, row, N_VOCAB, &token));
    CHECK(token == 20);
    OK(tokentrie_sampler_accept(sampler, &token, 1));
    OK(tokentrie_sampler_sample(sampler, row, N_VOCAB, &token));
    CHECK((token != 20) == penalised);
    OK(tokentrie_sampler_rollback(sampler, 1));
    OK(tokentrie_sampler_sample(sampler, row, N_VOCAB, &token));
    CHECK(token == 20);
    OK(tokentrie_sampler_free(sampler));
  }
  row[20] = 0.0f;
  draw.mode = 0, draw.repeat_penalty = -1.0f;
  STATUS(TOKENTRIE_ERROR_ARGUMENT, tokentrie_sampler_new(trie, vocab, &draw, NULL, 0, &sampler));
  SAYS("repeat_penalty is -1: it must be finite and more than 0");
  draw.repeat_penalty = 0.0f, draw.penalty_last_n = -2;
  STATUS(TOKENTRIE_ERROR_ARGUMENT, tokentrie_sampler_new(trie, vocab, &draw, NULL, 0, &sampler));
  SAYS("penalty_last_n is -2: it must be an integer from -1 to 2**31 - 1");
  draw.penalty_last_n = 0;
  draw.size = 7;
  STATUS(TOKENTRIE_ERROR_ARGUMENT, tokentrie_sampler_new(trie, vocab, &draw, NULL, 0, &sampler));
  const int32_t outside[] = {N_VOCAB};
  STATUS(TOKENTRIE_ERROR_VOCAB, tokentrie_sampler_new(trie, vocab, NULL, outside, 1, &sampler));
  tokentrie_vocab small = 0;
  OK(tokentrie_vocab_new(8, NULL, 0, &small));
  STATUS(TOKENTRIE_ERROR_VOCAB, tokentrie_sampler_new(trie, small, NULL, NULL, 0, &sampler));
  OK(tokentrie_vocab_free(small));
  OK(tokentrie_trie_free(trie));
  OK(tokentrie_vocab_free(vocab));
}

static void batches(void) {
  enum { ROWS = 3, STRIDE = N_VOCAB + 5 };
  tokentrie_vocab vocab = vocabulary();
  tokentrie_trie trie = tries(vocab);
  tokentrie_batch batch = 0;
  OK(tokentrie_batch_new(trie, vocab, NULL, NULL, 0, ROWS, &batch));
  size_t n = 0, depth = 0;
  OK(tokentrie_batch_rows(batch, &n));
  CHECK(n == ROWS);
  /* The last row ends with the vocabulary. */
  size_t length = (ROWS - 1) * STRIDE + N_VOCAB;
  float *logits = calloc(length, sizeof *logits);
  logits[5] = 1, logits[STRIDE + 9] = 1, logits[2 * STRIDE + 5] = 1;
  int32_t ids[ROWS], state = -1;
  OK(tokentrie_batch_select(batch, logits, length, STRIDE, ids, ROWS, &n));
  CHECK(n == ROWS && ids[0] == 5 && ids[1] == 9 && ids[2] == 5);
  STATUS(TOKENTRIE_ERROR_ROW, tokentrie_batch_select(batch, logits, length - 1, STRIDE, ids, ROWS, &n));
  STATUS(TOKENTRIE_ERROR_ROW, tokentrie_batch_select(batch, logits, length, N_VOCAB - 1, ids, ROWS, &n));
  STATUS(TOKENTRIE_ERROR_ROW, tokentrie_batch_apply(batch, logits, length, (size_t)-1));
  STATUS(TOKENTRIE_ERROR_BUFFER, tokentrie_batch_select(batch, logits, length, STRIDE, ids, 2, &n));
  OK(tokentrie_batch_apply(batch, logits, length, STRIDE));
  CHECK(isinf(logits[0]) && logits[5] == 1 && logits[N_VOCAB] == 0);
  uint32_t words[ROWS * 4];
  OK(tokentrie_batch_bitmask(batch, words, LENGTH(words), 4));
  CHECK(words[4] == ((1u << 5) | (1u << 9)));
  OK(tokentrie_batch_accept(batch, ids, ROWS));
  STATUS(TOKENTRIE_ERROR_ARGUMENT, tokentrie_batch_accept(batch, ids, 2));
  uint32_t leaf = 99;
  char name[8];
  OK(tokentrie_batch_leaf(batch, 1, &leaf, name, sizeof name, &n));
  CHECK(leaf == 2 && n == 4);
  STATUS(TOKENTRIE_NONE, tokentrie_batch_leaf(batch, 0, &leaf, name, sizeof name, &n));
  STATUS(TOKENTRIE_ERROR_ARGUMENT, tokentrie_batch_leaf(batch, 3, &leaf, name, sizeof name, &n));
  const uint32_t sources[] = {1, 1}, wrong[] = {0, 3};
  STATUS(TOKENTRIE_ERROR_ARGUMENT, tokentrie_batch_reorder(batch, wrong, 2));
  OK(tokentrie_batch_reorder(batch, sources, 2));
  OK(tokentrie_batch_state(batch, 1, &state, &depth));
  CHECK(state == TOKENTRIE_STATE_COMPLETE && depth == 1);
  OK(tokentrie_batch_rollback(batch, 1));
  OK(tokentrie_batch_state(batch, 0, &state, NULL));
  CHECK(state == TOKENTRIE_STATE_ACTIVE);
  STATUS(TOKENTRIE_ERROR_ARGUMENT, tokentrie_batch_new(trie, vocab, NULL, NULL, 0, (size_t)-1, &batch));
  free(logits);
  OK(tokentrie_batch_free(batch));
  OK(tokentrie_trie_free(trie));
  OK(tokentrie_vocab_free(vocab));
}

static void handles(void) {
  tokentrie_vocab vocab = vocabulary();
  tokentrie_trie trie = tries(vocab), again = 0;
  size_t n = 0;
  CHECK(vocab < (uint64_t)1 << 53 && trie < (uint64_t)1 << 53);
  STATUS(TOKENTRIE_ERROR_HANDLE, tokentrie_vocab_size(trie, &n));
  SAYS("is a trie: a vocabulary is needed");
  STATUS(TOKENTRIE_ERROR_HANDLE, tokentrie_vocab_size(0, &n));
  STATUS(TOKENTRIE_ERROR_HANDLE, tokentrie_vocab_size(UINT64_MAX, &n));
  STATUS(TOKENTRIE_ERROR_HANDLE, tokentrie_sampler_reset(vocab));
  OK(tokentrie_trie_free(trie));
  STATUS(TOKENTRIE_ERROR_HANDLE, tokentrie_trie_free(trie));
  SAYS("freed before");
  again = tries(vocab);
  CHECK(again != trie);
  STATUS(TOKENTRIE_ERROR_HANDLE, tokentrie_trie_path(trie, 0, NULL, 0, &n));
  OK(tokentrie_trie_free(again));
  OK(tokentrie_vocab_free(vocab));
}

static void constraints(void) {
  const uint8_t bytes[] = "0123456789kg<end>", kinds[] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2};
  uint64_t ends[13];
  for (uint64_t i = 0; i < 12; i++) ends[i] = i + 1;
  ends[12] = 17;
  tokentrie_vocab vocab = 0;
  OK(tokentrie_vocab_from_pieces(bytes, 17, ends, kinds, 13, &vocab));
  const char spec[] = "{ \"then\": [{\"integer\": {\"max\": 12, \"min\": 1}}, \"kg\"] }";
  tokentrie_constraint amount = 0;
  OK(tokentrie_constraint_from_json(spec, sizeof spec - 1, vocab, &amount));
  char text[80];
  size_t n = 0;
  OK(tokentrie_constraint_json(amount, text, sizeof text, &n));
  const char canonical[] = "{\"then\":[{\"integer\":{\"min\":1,\"max\":12}},\"kg\"]}";
  CHECK(n == sizeof canonical - 1 && memcmp(text, canonical, n) == 0);
  STATUS(TOKENTRIE_ERROR_BUFFER, tokentrie_constraint_json(amount, text, 3, &n));
  CHECK(n == sizeof canonical - 1);

  tokentrie_sampler_options options = {.size = sizeof options, .after = TOKENTRIE_AFTER_STOP};
  tokentrie_sampler sampler = 0;
  OK(tokentrie_sampler_new(amount, vocab, &options, NULL, 0, &sampler));
  float row[13] = {0, 5, 0, 4, 0, 0, 0, 0, 0, 9};
  int32_t token = -1;
  OK(tokentrie_sampler_sample(sampler, row, 13, &token));
  CHECK(token == 9);
  const int32_t twelve[] = {1, 2}, more[] = {0}, rest[] = {10, 11, 12};
  OK(tokentrie_sampler_accept(sampler, twelve, 2));
  STATUS(TOKENTRIE_ERROR_NOT_ALLOWED, tokentrie_sampler_accept(sampler, more, 1));
  OK(tokentrie_sampler_accept(sampler, rest, 3));
  OK(tokentrie_sampler_free(sampler));

  const char wrong[] = "{\"then\": [\"a\", {\"integer\": {\"mni\": 1}}]}";
  tokentrie_constraint none = 77;
  STATUS(TOKENTRIE_ERROR_SPEC, tokentrie_constraint_from_json(wrong, sizeof wrong - 1, vocab, &none));
  SAYS("$.then[1].integer.mni");
  CHECK(none == 77);
  STATUS(TOKENTRIE_ERROR_SPEC, tokentrie_constraint_from_json("{", 1, vocab, &none));
  STATUS(TOKENTRIE_ERROR_ARGUMENT, tokentrie_constraint_from_json(NULL, 1, vocab, &none));
  STATUS(TOKENTRIE_ERROR_ARGUMENT, tokentrie_constraint_from_json(spec, sizeof spec - 1, vocab, NULL));
  STATUS(TOKENTRIE_ERROR_HANDLE, tokentrie_constraint_from_json(spec, sizeof spec - 1, amount, &none));
  SAYS("is a constraint: a vocabulary is needed");
  STATUS(TOKENTRIE_ERROR_HANDLE, tokentrie_trie_path(amount, 0, NULL, 0, &n));
  OK(tokentrie_constraint_free(amount));
  STATUS(TOKENTRIE_ERROR_HANDLE, tokentrie_sampler_new(amount, vocab, &options, NULL, 0, &sampler));
  OK(tokentrie_vocab_free(vocab));
}

static void null_everywhere(void) {
  tokentrie_vocab vocab = vocabulary();
  tokentrie_trie trie = tries(vocab), other = 0;
  tokentrie_sampler sampler = 0;
  size_t n = 0;
  int32_t what = 0, token = 0;
  uint32_t leaf = 0;
  float row[N_VOCAB] = {0};
  OK(tokentrie_sampler_new(trie, vocab, NULL, NULL, 0, &sampler));
#define REFUSED(call)                       \
  do {                                      \
    STATUS(TOKENTRIE_ERROR_ARGUMENT, call); \
    SAYS("is NULL");                        \
  } while (0)
  REFUSED(tokentrie_vocab_new(5, NULL, 0, NULL));
  REFUSED(tokentrie_vocab_new(5, NULL, 1, &other));
  REFUSED(tokentrie_vocab_from_pieces(NULL, 4, NULL, NULL, 1, &other));
  REFUSED(tokentrie_vocab_size(vocab, NULL));
  REFUSED(tokentrie_trie_from_json(NULL, 4, 0, 0, &other));
  REFUSED(tokentrie_trie_from_json(PAYLOAD, strlen(PAYLOAD), 0, 0, NULL));
  REFUSED(tokentrie_trie_from_sequences(NULL, 4, NULL, NULL, 0, NULL, 2, &other));
  REFUSED(tokentrie_trie_from_rtkt(NULL, 4, &other));
  REFUSED(tokentrie_trie_open(NULL, 4, 0, &other));
  REFUSED(tokentrie_trie_get_info(trie, NULL));
  REFUSED(tokentrie_trie_children(trie, NULL, 1, NULL, 0, &n));
  REFUSED(tokentrie_trie_children(trie, NULL, 0, NULL, 8, &n));
  REFUSED(tokentrie_trie_children(trie, NULL, 0, NULL, 0, NULL));
  REFUSED(tokentrie_trie_find(trie, NULL, 1, &leaf));
  REFUSED(tokentrie_sampler_new(trie, vocab, NULL, NULL, 0, NULL));
  REFUSED(tokentrie_sampler_apply(sampler, NULL, N_VOCAB));
  REFUSED(tokentrie_sampler_sample(sampler, NULL, N_VOCAB, &token));
  REFUSED(tokentrie_sampler_sample(sampler, row, N_VOCAB, NULL));
  REFUSED(tokentrie_sampler_allowed(sampler, NULL, 0, NULL, &what));
  REFUSED(tokentrie_sampler_allowed(sampler, NULL, 0, &n, NULL));
  REFUSED(tokentrie_sampler_accept(sampler, NULL, 1));
  REFUSED(tokentrie_sampler_activate(sampler, NULL, 1));
  REFUSED(tokentrie_sampler_clone(sampler, NULL));
  REFUSED(tokentrie_sampler_bitmask(sampler, NULL, 4));
  OK(tokentrie_sampler_state(sampler, NULL, NULL));
  /* Lengths that lie beyond all memory. */
  STATUS(TOKENTRIE_ERROR_ARGUMENT, tokentrie_sampler_sample(sampler, row, (size_t)-1, &token));
  STATUS(TOKENTRIE_ERROR_ARGUMENT, tokentrie_sampler_accept(sampler, &token, (size_t)-1 / 2));
  OK(tokentrie_sampler_free(sampler));
  OK(tokentrie_trie_free(trie));
  OK(tokentrie_vocab_free(vocab));
}

/* Lengths that no memory has are refused before anything is read: each argument of every function that takes one. */
static void impossible_lengths(void) {
  const uint64_t big[] = {UINT64_MAX, UINT64_MAX / 2, UINT64_MAX / 4 + 2, (uint64_t)1 << 62, ((uint64_t)1 << 62) + 1,
                          (uint64_t)1 << 61, (uint64_t)1 << 58};
  tokentrie_vocab vocab = vocabulary(), other = 0;
  tokentrie_trie trie = tries(vocab);
  tokentrie_sampler sampler = 0;
  tokentrie_batch batch = 0;
  tokentrie_cache cache = 0;
  OK(tokentrie_sampler_new(trie, vocab, NULL, NULL, 0, &sampler));
  OK(tokentrie_batch_new(trie, vocab, NULL, NULL, 0, 1, &batch));
  OK(tokentrie_cache_new(1, &cache));
  for (size_t i = 0; i < LENGTH(big); i++) {
    size_t l = (size_t)big[i], n = 0;
    if (l < SIZE_MAX / 64) continue; /* a smaller machine */
    int32_t ids[4] = {0}, what = 0;
    uint32_t word = 0, leaf = 0;
    uint64_t end = l;
    float row[N_VOCAB] = {0};
    char text[4];
    uint8_t bytes[4] = {0};
#define TOO_LONG(call) CHECK((call) < 0)
    TOO_LONG(tokentrie_vocab_new(l, NULL, 0, &other));
    TOO_LONG(tokentrie_vocab_new(5, ids, l, &other));
    TOO_LONG(tokentrie_vocab_from_pieces(bytes, l, &end, NULL, 1, &other));
    TOO_LONG(tokentrie_vocab_from_pieces(bytes, 0, &end, NULL, l, &other));
    TOO_LONG(tokentrie_vocab_end_of_generation(vocab, ids, l, &n));
    TOO_LONG(tokentrie_vocab_bytes(vocab, ids, l, bytes, 4, &n));
    TOO_LONG(tokentrie_vocab_bytes(vocab, ids, 1, bytes, l, &n));
    TOO_LONG(tokentrie_trie_from_json(PAYLOAD, l, vocab, 0, &other));
    TOO_LONG(tokentrie_trie_from_sequences(ids, l, &end, NULL, 0, NULL, 1, &other));
    TOO_LONG(tokentrie_trie_from_sequences(ids, 4, &end, NULL, 0, NULL, l, &other));
    TOO_LONG(tokentrie_trie_from_sequences(ids, 4, &end, text, l, &end, 1, &other));
    TOO_LONG(tokentrie_trie_from_rtkt(bytes, l, &other));
    TOO_LONG(tokentrie_trie_to_rtkt(trie, bytes, l, &n));
    TOO_LONG(tokentrie_trie_open(PAYLOAD, l, 0, &other));
    TOO_LONG(tokentrie_trie_save(trie, PAYLOAD, l, 0));
    TOO_LONG(tokentrie_trie_select(trie, PAYLOAD, l, &other));
    TOO_LONG(tokentrie_trie_path(trie, l, text, 4, &n));
    TOO_LONG(tokentrie_trie_path(trie, 0, text, l, &n));
    TOO_LONG(tokentrie_trie_children(trie, ids, l, ids, 4, &n));
    TOO_LONG(tokentrie_trie_children(trie, NULL, 0, ids, l, &n));
    TOO_LONG(tokentrie_trie_forced(trie, ids, l, ids, 4, &n));
    TOO_LONG(tokentrie_trie_forced(trie, NULL, 0, ids, l, &n));
    TOO_LONG(tokentrie_trie_find(trie, ids, l, &leaf));
    TOO_LONG(tokentrie_trie_leaf_tokens(trie, 0, ids, l, &n));
    TOO_LONG(tokentrie_trie_leaf_name(trie, 0, text, l, &n));
    TOO_LONG(tokentrie_cache_new(l, &other));
    TOO_LONG(tokentrie_trie_from_json(PAYLOAD, l, vocab, cache, &other));
    TOO_LONG(tokentrie_constraint_from_json(PAYLOAD, l, vocab, &other));
    TOO_LONG(tokentrie_sampler_new(trie, vocab, NULL, ids, l, &other));
    TOO_LONG(tokentrie_sampler_allowed(sampler, ids, l, &n, &what));
    TOO_LONG(tokentrie_sampler_apply(sampler, row, l));
    TOO_LONG(tokentrie_sampler_sample(sampler, row, l, ids));
    TOO_LONG(tokentrie_sampler_advance(sampler, row, l, ids, 4, &n));
    TOO_LONG(tokentrie_sampler_advance(sampler, row, N_VOCAB, ids, l, &n));
    TOO_LONG(tokentrie_sampler_accept(sampler, ids, l));
    TOO_LONG(tokentrie_sampler_rollback(sampler, l));
    TOO_LONG(tokentrie_sampler_activate(sampler, PAYLOAD, l));
    TOO_LONG(tokentrie_sampler_forced(sampler, ids, l, &n));
    TOO_LONG(tokentrie_sampler_bitmask(sampler, &word, l));
    TOO_LONG(tokentrie_sampler_leaf(sampler, &leaf, text, l, &n));
    TOO_LONG(tokentrie_batch_new(trie, vocab, NULL, NULL, 0, l, &other));
    TOO_LONG(tokentrie_batch_new(trie, vocab, NULL, ids, l, 1, &other));
    TOO_LONG(tokentrie_batch_apply(batch, row, l, N_VOCAB));
    TOO_LONG(tokentrie_batch_select(batch, row, l, N_VOCAB, ids, 4, &n));
    TOO_LONG(tokentrie_batch_select(batch, row, N_VOCAB, N_VOCAB, ids, l, &n));
    TOO_LONG(tokentrie_batch_accept(batch, ids, l));
    TOO_LONG(tokentrie_batch_reorder(batch, &word, l));
    TOO_LONG(tokentrie_batch_rollback(batch, l));
    TOO_LONG(tokentrie_batch_bitmask(batch, &word, l, 4));
    TOO_LONG(tokentrie_batch_state(batch, l, &what, &n));
    TOO_LONG(tokentrie_batch_leaf(batch, l, &leaf, text, 4, &n));
    TOO_LONG(tokentrie_batch_leaf(batch, 0, &leaf, text, l, &n));
    /* A stride that no matrix has is of no matter where there is one row: the row ends with the vocabulary. */
    OK(tokentrie_batch_apply(batch, row, N_VOCAB, l));
    /* Nothing was made and nothing has moved. */
    CHECK(other == 0);
    size_t depth = 9;
    OK(tokentrie_sampler_state(sampler, &what, &depth));
    CHECK(what == TOKENTRIE_STATE_ACTIVE && depth == 0);
  }
  OK(tokentrie_cache_free(cache));
  OK(tokentrie_batch_free(batch));
  OK(tokentrie_sampler_free(sampler));
  OK(tokentrie_trie_free(trie));
  OK(tokentrie_vocab_free(vocab));
}

/* Rows that draw cost little, however many they are: a generator is made for a row when it first draws. */
static void many_rows(void) {
  enum { ROWS = 1 << 20 };
  tokentrie_vocab vocab = vocabulary();
  tokentrie_trie trie = tries(vocab);
  tokentrie_batch batch = 0;
  tokentrie_sampler_options draw = {.size = sizeof draw, .mode = TOKENTRIE_MODE_SAMPLED, .temperature = 1.0f,
                                    .seed = 7, .has_seed = 1};
  long before = resident();
  OK(tokentrie_batch_new(trie, vocab, &draw, NULL, 0, ROWS, &batch));
  /* Valgrind keeps books of every byte. */
  CHECK(resident() - before < (getenv("UNDER_VALGRIND") ? 900L : 300L) << 20);
  OK(tokentrie_batch_free(batch));
  OK(tokentrie_trie_free(trie));
  OK(tokentrie_vocab_free(vocab));
}

static void *one_thread(void *argument) {
  tokentrie_sampler sampler = *(tokentrie_sampler *)argument;
  float row[N_VOCAB] = {0};
  size_t refused = 0;
  CHECK(strcmp(tokentrie_last_error(), "") == 0);
  for (int i = 0; i < 2000; i++) {
    int32_t token = -1;
    tokentrie_status status = tokentrie_sampler_sample(sampler, row, N_VOCAB, &token);
    CHECK(status == TOKENTRIE_OK ? token == 5 : status == TOKENTRIE_ERROR_BUSY);
    refused += status == TOKENTRIE_ERROR_BUSY;
  }
  if (refused > 0) SAYS("another thread is using the sampler");
  return NULL;
}

static void threads(void) {
  tokentrie_vocab vocab = vocabulary();
  tokentrie_trie trie = tries(vocab);
  tokentrie_sampler sampler = 0;
  OK(tokentrie_sampler_new(trie, vocab, NULL, NULL, 0, &sampler));
  pthread_t others[4];
  for (size_t i = 0; i < LENGTH(others); i++) CHECK(pthread_create(&others[i], NULL, one_thread, &sampler) == 0);
  for (size_t i = 0; i < LENGTH(others); i++) CHECK(pthread_join(others[i], NULL) == 0);
  OK(tokentrie_sampler_free(sampler));
  OK(tokentrie_trie_free(trie));
  OK(tokentrie_vocab_free(vocab));
}

static void no_llama(void) {
  CHECK(llama_sampler_init_token_trie(NULL, PAYLOAD, 0) == NULL);
  SAYS("no llama.cpp is loaded");
  CHECK(llama_sampler_init_token_trie(NULL, PAYLOAD, 2) == NULL);
  SAYS("mode is 2");
  CHECK(llama_sampler_init_token_trie(NULL, NULL, 0) == NULL);
  SAYS("json is NULL");
  tokentrie_llama_api api = {.size = sizeof api, .callback_fields = 13};
  STATUS(TOKENTRIE_ERROR_LLAMA, tokentrie_bind_llama(&api));
  SAYS("a table of 13 callbacks is unknown");
  api.callback_fields = 12;
  STATUS(TOKENTRIE_ERROR_ARGUMENT, tokentrie_bind_llama(&api));
  SAYS("sampler_init is NULL");
  OK(tokentrie_bind_llama(NULL));
  STATUS(TOKENTRIE_ERROR_ARGUMENT, tokentrie_chain_state(NULL, NULL, NULL));
}

int main(void) {
  CHECK(tokentrie_abi_version() >> 16 == TOKENTRIE_ABI_VERSION >> 16);
  CHECK(strcmp(tokentrie_last_error(), "") == 0);
  CHECK(strcmp(tokentrie_status_name(TOKENTRIE_ERROR_BUSY), "TOKENTRIE_ERROR_BUSY") == 0);
  CHECK(strcmp(tokentrie_status_name(1234), "unknown status") == 0);
  vocabularies();
  sets();
  payloads();
  samplers();
  options();
  batches();
  constraints();
  handles();
  null_everywhere();
  impossible_lengths();
  many_rows();
  threads();
  no_llama();
  puts("core: everything as promised");
  return 0;
}
