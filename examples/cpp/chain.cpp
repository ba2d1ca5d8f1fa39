// A token trie in the sampler chain of any llama.cpp: chain MODEL.gguf PROMPT VALUE...
// Prints, for each chain, the tokens that it wrote: greedy, then draws with seeds, then draws after penalties.
#include <llama.h>
#include <tokentrie.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

namespace {

[[noreturn]] void fail(const std::string &what) {
  std::fprintf(stderr, "%s\n", what.c_str());
  std::exit(1);
}

std::vector<llama_token> tokenize(const llama_vocab *vocab, const std::string &text, bool add_special) {
  std::vector<llama_token> tokens(text.size() + 8);
  const int n = llama_tokenize(vocab, text.data(), static_cast<int32_t>(text.size()), tokens.data(),
                               static_cast<int32_t>(tokens.size()), add_special, false);
  if (n < 0) fail("cannot tokenize " + text);
  tokens.resize(static_cast<size_t>(n));
  return tokens;
}

std::string payload(const llama_vocab *vocab, const std::vector<std::string> &values) {
  std::string json = R"({"modelId": "example", "descriptors": [{"path": "value", "leaves": [)";
  for (const auto &value : values) {
    json += (&value == values.data() ? "" : ", ") + std::string(R"({"name": ")") + value + R"(", "tokens": [)";
    const auto tokens = tokenize(vocab, value, false);
    for (size_t i = 0; i < tokens.size(); i++) json += (i ? ", " : "") + std::to_string(tokens[i]);
    json += "]}";
  }
  return json + "]}]}";
}

using Chain = std::unique_ptr<llama_sampler, decltype(&llama_sampler_free)>;

// The trie goes first: after other samplers the legal tokens may be gone. The chain owns it.
std::pair<Chain, llama_sampler *> chain_of(const llama_vocab *vocab, const std::string &json, int mode,
                                           std::initializer_list<llama_sampler *> rest) {
  Chain chain(llama_sampler_chain_init(llama_sampler_chain_default_params()), llama_sampler_free);
  llama_sampler *trie = llama_sampler_init_token_trie(vocab, json.c_str(), mode);
  if (!trie) fail(tokentrie_last_error());
  llama_sampler_chain_add(chain.get(), trie);
  for (llama_sampler *sampler : rest) llama_sampler_chain_add(chain.get(), sampler);
  return {std::move(chain), trie};
}

// Writes one value after the prompt.
void write(llama_context *context, std::vector<llama_token> prompt, const std::string &what,
           std::pair<Chain, llama_sampler *> made) {
  llama_memory_clear(llama_get_memory(context), true);
  std::printf("%s:", what.c_str());
  std::vector<llama_token> next = std::move(prompt);
  int32_t state = TOKENTRIE_STATE_ACTIVE;
  while (state == TOKENTRIE_STATE_ACTIVE) {
    if (llama_decode(context, llama_batch_get_one(next.data(), static_cast<int32_t>(next.size())))) fail("decode");
    // It accepts the token by itself.
    next = {llama_sampler_sample(made.first.get(), context, -1)};
    std::printf(" %d", next[0]);
    if (tokentrie_chain_state(made.second, &state, nullptr)) fail(tokentrie_last_error());
  }
  uint32_t leaf = 0;
  char name[256];
  size_t length = 0;
  if (tokentrie_chain_leaf(made.second, &leaf, name, sizeof name, &length)) fail(tokentrie_last_error());
  std::printf(" = %.*s\n", static_cast<int>(length), name);
}

}  // namespace

int main(int count, char **arguments) {
  if (count < 4) fail("usage: chain MODEL.gguf PROMPT VALUE...");
  llama_log_set([](ggml_log_level, const char *, void *) {}, nullptr);
  llama_backend_init();
  llama_model *model = llama_model_load_from_file(arguments[1], llama_model_default_params());
  if (!model) fail("cannot load the model");
  llama_context_params params = llama_context_default_params();
  params.n_ctx = 512;
  params.n_threads = params.n_threads_batch = 1;
  llama_context *context = llama_init_from_model(model, params);
  if (!context) fail("cannot make a context");
  const llama_vocab *vocab = llama_model_get_vocab(model);
  const int32_t n_vocab = llama_vocab_n_tokens(vocab);
  const auto prompt = tokenize(vocab, arguments[2], true);
  const std::string json = payload(vocab, {arguments + 3, arguments + count});

  write(context, prompt, "greedy", chain_of(vocab, json, TOKENTRIE_MODE_GREEDY, {llama_sampler_init_dist(1)}));
  for (uint32_t seed = 0; seed < 20; seed++) {
    const auto name = std::to_string(seed);
    write(context, prompt, "dist " + name,
          chain_of(vocab, json, TOKENTRIE_MODE_SAMPLED,
                   {llama_sampler_init_temp(1.5f), llama_sampler_init_dist(seed)}));
    write(context, prompt, "penalties " + name,
          chain_of(vocab, json, TOKENTRIE_MODE_SAMPLED,
                   {llama_sampler_init_penalties(n_vocab, 64, 1.5f, 0.5f, 0.5f), llama_sampler_init_temp(1.5f),
                    llama_sampler_init_dist(seed)}));
  }
  llama_free(context);
  llama_model_free(model);
  llama_backend_free();
}
