# Read by CMake right after each `project()` call of llama.cpp: what makes it compile in half the time.

# The helper library `common` (and an HTTP server with it) is nearly two thirds of the compile time, and no line of
# tokentrie links to it. The crate's own switch does not reach that far: llama-cpp-2 0.1.160 depends on llama-cpp-sys-2
# with default features, and `common` is one of them.
set(LLAMA_BUILD_COMMON OFF CACHE BOOL "not linked by tokentrie" FORCE)

# Half of what is left is reading the same headers of the standard library for each file: they are compiled once.
function(tokentrie_once_all_targets_are_known)
  if(TARGET llama)
    set(headers "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/llama_headers.h")
    target_precompile_headers(llama PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:${headers}>")
    # Cargo's profile `checked` is for tests: graphs are built and computed a little slower, and compiled in half the
    # time. What counts in ggml is written with intrinsics.
    if(CMAKE_BINARY_DIR MATCHES "/checked/build/" AND NOT MSVC)
      target_compile_options(llama PRIVATE -O1)
      foreach(part ggml-base ggml-cpu)
        if(TARGET ${part})
          target_compile_options(${part} PRIVATE -O2)
        endif()
      endforeach()
    endif()
  endif()
endfunction()
if(CMAKE_CURRENT_SOURCE_DIR STREQUAL CMAKE_SOURCE_DIR AND NOT CMAKE_VERSION VERSION_LESS 3.19)
  cmake_language(DEFER CALL tokentrie_once_all_targets_are_known)
endif()
