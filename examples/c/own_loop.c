/* A loop over rows of logits of your own, here random ones: the sampler says what may come, and never more. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tokentrie.h>

enum { N_VOCAB = 300 };

static int failed(const char *what) {
  fprintf(stderr, "%s: %s\n", what, tokentrie_last_error());
  return 1;
}

int main(void) {
  const char *json = "{\"modelId\": \"mine\", \"descriptors\": [{\"path\": \"action\", \"leaves\": ["
                     "{\"name\": \"REPLY\", \"tokens\": [10, 20, 30]}, {\"name\": \"STOP\", \"tokens\": [9]}]}]}";
  tokentrie_vocab vocab;
  tokentrie_trie trie;
  tokentrie_sampler sampler;
  if (tokentrie_vocab_new(N_VOCAB, NULL, 0, &vocab)) return failed("vocabulary");
  if (tokentrie_trie_from_json(json, strlen(json), vocab, 0, &trie)) return failed("trie");
  if (tokentrie_sampler_new(trie, vocab, NULL, NULL, 0, &sampler)) return failed("sampler");

  int32_t state = TOKENTRIE_STATE_ACTIVE;
  while (state == TOKENTRIE_STATE_ACTIVE) {
    float logits[N_VOCAB]; /* of your model */
    for (int i = 0; i < N_VOCAB; i++) logits[i] = (float)rand() / (float)RAND_MAX;
    int32_t tokens[8];
    size_t n = 0;
    /* Chooses one token, and adds those that must follow: your model need not be asked for them. */
    if (tokentrie_sampler_advance(sampler, logits, N_VOCAB, tokens, 8, &n)) return failed("advance");
    for (size_t i = 0; i < n; i++) printf("%d ", tokens[i]);
    if (tokentrie_sampler_state(sampler, &state, NULL)) return failed("state");
  }
  uint32_t leaf;
  char name[32];
  size_t length = 0;
  if (tokentrie_sampler_leaf(sampler, &leaf, name, sizeof name, &length)) return failed("leaf");
  printf("is %.*s\n", (int)length, name);
  return tokentrie_sampler_free(sampler) || tokentrie_trie_free(trie) || tokentrie_vocab_free(vocab);
}
