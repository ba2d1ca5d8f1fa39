/* A library for the tests of the calls themselves: every type as argument and result, memory in and out, callbacks. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

uint32_t tokentrie_abi_version(void) { return FAKE_VERSION; }
#ifdef FAKE_SESSIONS
/* Sessions that say three tokens and know no tries. */
static int32_t fake_at;
uint32_t tokentrie_features(void) { return 1; }
const char *tokentrie_status_name(int32_t status) { return status < 0 ? "FAKE_ERROR" : "FAKE_OK"; }
int32_t tokentrie_session_open(const char *path, size_t length, const void *options, uint64_t *session) {
  *session = 5;
  return path && length && options ? 0 : -14;
}
int32_t tokentrie_session_tokenize(uint64_t session, const char *text, size_t length, int32_t add_special,
                                   int32_t parse_special, int32_t *ids, size_t capacity, size_t *count) {
  *count = length;
  if (capacity < length) return -3;
  for (size_t i = 0; i < length; i++) ids[i] = text[i];
  return session == 5 && add_special && parse_special ? 0 : -2;
}
int32_t tokentrie_session_prefill(uint64_t session, const char *json, size_t length, size_t *taken) {
  *taken = length;
  return session == 5 && length > 1 && json[0] == '{' ? 0 : -2;
}
int32_t tokentrie_session_start(uint64_t session, const char *json, size_t length) {
  fake_at = 0;
  return session == 5 && length > 1 && json[0] == '{' ? 0 : -2;
}
int32_t tokentrie_session_next(uint64_t session, int32_t timeout_ms, int32_t *token, char *text, size_t capacity,
                               size_t *count, int32_t *is_done) {
  (void)session, (void)timeout_ms;
  /* The second token has more text than most buffers hold. */
  *count = fake_at == 1 ? 1000 : fake_at < 3 ? 1 : 0;
  if (capacity < *count) return -3;
  memset(text, 'a' + fake_at, *count);
  *is_done = fake_at == 3;
  *token = *is_done ? -1 : fake_at++;
  return 0;
}
int32_t tokentrie_session_get_info(uint64_t session, void *info) { return session == 5 && info ? 0 : -1; }
int32_t tokentrie_session_result(uint64_t session, char *json, size_t capacity, size_t *count) {
  (void)session, (void)json, (void)capacity;
  *count = 0;
  return 1;
}
int32_t tokentrie_session_cancel(uint64_t session) { return session == 5 ? 0 : -1; }
int32_t tokentrie_session_close(uint64_t session) { return session == 5 ? 0 : -1; }
#else
uint32_t tokentrie_features(void) { return 0; }
#endif
const char *tokentrie_last_error(void) { return "d\xc3\xa9j\xc3\xa0 \xf0\x9f\x98\x80"; }
const char *fake_null_string(void) { return NULL; }
/* Each argument weighs something else, so that no two of them can be exchanged. */
double fake_sum(int32_t a, uint32_t b, float c, double d, size_t e, uint64_t f) {
  return a + 2.0 * b + 3.0 * c + 5.0 * d + 7.0 * (double)e + 11.0 * (double)f;
}
uint64_t fake_handle(uint64_t handle) { return handle; }
void *fake_address(void *address) { return address; }
size_t fake_size(size_t size) { return size; }
int32_t fake_negative(void) { return -17; }
/* Writes i * 2 of every float; says how many, or -1 for NULL. */
int32_t fake_double(const float *in, size_t n, float *out, size_t *count) {
  if (!in && n) return -1;
  for (size_t i = 0; i < n; i++) out[i] = in[i] * 2;
  *count = n;
  return in ? 1 : 0;
}
int32_t fake_tokens(int32_t n, void (*callback)(int32_t, const char *, int32_t, void *), void *user) {
  static const char *const texts[] = {"a", "\xc3\xa9", ""};
  for (int32_t i = 0; i < n; i++) callback(i, texts[i % 3], 0, user);
  callback(-1, NULL, 1, user);
  return n;
}
