# Read by CMake right after llama.cpp's `project()` call. Its helper library `common` (and an HTTP server with it) is
# nearly two thirds of the compile time, and no line of tokentrie links to it. The crate's own switch does not reach
# that far: llama-cpp-2 0.1.160 depends on llama-cpp-sys-2 with default features, and `common` is one of them.
set(LLAMA_BUILD_COMMON OFF CACHE BOOL "not linked by tokentrie" FORCE)
