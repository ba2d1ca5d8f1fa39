/* A library for the tests of the calls themselves: every type as argument and result, memory in and out, callbacks. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

uint32_t tokentrie_abi_version(void) { return FAKE_VERSION; }
uint32_t tokentrie_features(void) { return 0; }
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
