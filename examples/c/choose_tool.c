/* Picks a tool with a model: choose_tool MODEL.gguf "Wake me at seven" */
#include <stdio.h>
#include <string.h>
#include <tokentrie.h>

static int failed(const char *what) {
  fprintf(stderr, "%s: %s\n", what, tokentrie_last_error());
  return 1;
}

int main(int count, char **arguments) {
  if (count != 3) return fprintf(stderr, "usage: choose_tool MODEL.gguf REQUEST\n"), 2;
  /* As many models write a conversation; the answer is begun for it. What the user said must be plain text here. */
  if (strpbrk(arguments[2], "\"\\\n\r\t")) return fprintf(stderr, "one line without quotes, please\n"), 2;
  char request[2048], result[65536];
  int length = snprintf(request, sizeof request,
                        "{\"prompt\": \"<|im_start|>system\\nTools: set_alarm, play_music, send_message.<|im_end|>\\n"
                        "<|im_start|>user\\n%s<|im_end|>\\n<|im_start|>assistant\\nI should call \\\"\","
                        " \"choices\": [\"set_alarm\", \"play_music\", \"send_message\"]}",
                        arguments[2]);
  if (length < 0 || (size_t)length >= sizeof request) return fprintf(stderr, "the request is too long\n"), 2;

  tokentrie_session session;
  size_t n;
  if (tokentrie_session_open(arguments[1], strlen(arguments[1]), NULL, &session)) return failed("open");
  if (tokentrie_session_choose(session, request, (size_t)length)) return failed("choose");
  if (tokentrie_session_result(session, result, sizeof result, &n)) return failed("result");
  printf("%.*s\n", (int)n, result); /* {"name":"set_alarm","value":"set_alarm",...} */
  return tokentrie_session_close(session) ? failed("close") : 0;
}
