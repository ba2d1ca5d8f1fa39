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
  static const char *const tools[] = {"set_alarm", "play_music", "send_message"};
  enum { TOOLS = sizeof tools / sizeof *tools };
  char names[256], prompt[1024];
  uint64_t ends[TOOLS];
  size_t length = 0;
  for (int i = 0; i < TOOLS; i++) {
    memcpy(names + length, tools[i], strlen(tools[i]));
    ends[i] = length += strlen(tools[i]);
  }
  /* As many models write a conversation; the answer is begun for it. */
  snprintf(prompt, sizeof prompt,
           "<|im_start|>system\nTools: set_alarm, play_music, send_message.<|im_end|>\n"
           "<|im_start|>user\n%s<|im_end|>\n<|im_start|>assistant\nI should call \"",
           arguments[2]);

  tokentrie_session session;
  if (tokentrie_session_open(arguments[1], strlen(arguments[1]), NULL, &session)) return failed("open");
  double probabilities[TOOLS];
  tokentrie_choice choice = {.size = sizeof choice};
  if (tokentrie_session_choose(session, prompt, strlen(prompt), names, length, ends, TOOLS, probabilities, TOOLS,
                               &choice))
    return failed("choose");
  for (uint32_t i = 0; i < TOOLS; i++)
    printf("%5.1f %%  %s%s\n", 100 * probabilities[i], tools[i], i == choice.best ? "  <-" : "");
  return tokentrie_session_close(session) ? failed("close") : 0;
}
