/* What the test programs share. */
#ifndef CHECK_H
#define CHECK_H

#include "tokentrie.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                                      \
  do {                                                                                        \
    if (!(condition)) {                                                                       \
      fprintf(stderr, "%s:%d: not so: %s (last error: %s)\n", __FILE__, __LINE__, #condition, \
              tokentrie_last_error());                                                        \
      exit(1);                                                                                \
    }                                                                                         \
  } while (0)

#define STATUS(expected, call)                                                                               \
  do {                                                                                                       \
    tokentrie_status status_ = (call);                                                                       \
    if (status_ != (expected)) {                                                                             \
      fprintf(stderr, "%s:%d: %s gave %s, not %s: %s\n", __FILE__, __LINE__, #call,                          \
              tokentrie_status_name(status_), tokentrie_status_name(expected), tokentrie_last_error());      \
      exit(1);                                                                                               \
    }                                                                                                        \
  } while (0)

#define OK(call) STATUS(TOKENTRIE_OK, call)

/* That the last error says this. */
#define SAYS(part) CHECK(strstr(tokentrie_last_error(), part) != NULL)

#define LENGTH(array) (sizeof(array) / sizeof *(array))

#endif
