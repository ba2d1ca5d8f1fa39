/* What a model writes inside a constraint, or answers in a chat. C and C++.
 *   examples MODEL.gguf generate REQUEST      the tokens, a line; then the result as JSON
 *   examples MODEL.gguf choose REQUEST        the choice as JSON
 *   examples MODEL.gguf probability REQUEST   the probability as JSON
 *   examples MODEL.gguf decide REQUEST        the answers as JSON
 *   examples MODEL.gguf chat REQUEST          the reply as JSON */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tokentrie.h>

static void done(tokentrie_status status) {
  if (status >= 0) return;
  fprintf(stderr, "%s\n", tokentrie_last_error());
  exit(1);
}

static void print_token(int32_t token, const char *text, int32_t is_done, void *user) {
  (void)text, (void)user;
  if (!is_done) printf("%d ", (int)token);
}

static void print_result(tokentrie_session session) {
  static char result[1 << 20];
  size_t n = 0;
  done(tokentrie_session_result(session, result, sizeof result, &n));
  printf("%.*s\n", (int)n, result);
}

static void generate(tokentrie_session session, const char *request) {
  done(tokentrie_session_generate(session, request, strlen(request), print_token, NULL));
  printf("\n");
  print_result(session);
}

static void choose(tokentrie_session session, const char *request) {
  done(tokentrie_session_choose(session, request, strlen(request)));
  print_result(session);
}

static void probability(tokentrie_session session, const char *request) {
  done(tokentrie_session_probability(session, request, strlen(request)));
  print_result(session);
}

static void decide(tokentrie_session session, const char *request) {
  done(tokentrie_session_decide(session, request, strlen(request)));
  print_result(session);
}

static void chat(tokentrie_session session, const char *request) {
  static char text[65536];
  int32_t token = 0, is_done = 0;
  size_t n = 0;
  done(tokentrie_chat_start(session, request, strlen(request)));
  while (!is_done) done(tokentrie_session_next(session, -1, &token, text, sizeof text, &n, &is_done));
  print_result(session);
}

int main(int argc, char **argv) {
  tokentrie_session session = 0;
  tokentrie_session_options options;
  if (argc != 4) return 2;
  memset(&options, 0, sizeof options);
  options.size = sizeof options;
  options.n_threads = 1;
  options.after = TOKENTRIE_AFTER_STOP;
  done(tokentrie_session_open(argv[1], strlen(argv[1]), &options, &session));
  if (strcmp(argv[2], "chat") == 0) chat(session, argv[3]);
  else if (strcmp(argv[2], "choose") == 0) choose(session, argv[3]);
  else if (strcmp(argv[2], "probability") == 0) probability(session, argv[3]);
  else if (strcmp(argv[2], "decide") == 0) decide(session, argv[3]);
  else generate(session, argv[3]);
  done(tokentrie_session_close(session));
  return 0;
}
