# FENESTRA_SANITIZED: the build's flags ask for a sanitizer. FENESTRA_TEST_TIMEOUT: seconds that a test
# may take, under one ten times as many.
#
# FENESTRA_KERNEL_OPTIONS: of the sanitizers in the library. The check that no pointer wraps around makes
# clang slow on kernels, half as long again and more. Those of null, alignment and the size of objects
# cost another quarter and see what the address sanitizer or the processor reports as well; there, calls
# instead of checks in place save a fifth (outer_tiles.cpp: 64 s of processor time, 37 s so).
#
# FENESTRA_PYTHON_ENVIRONMENT: what an interpreter that nobody instrumented needs in order to load a module
# that was: the runtime before all else, the C++ runtime right behind it (exceptions are intercepted), and
# its own memory from malloc, where the sanitizer sees it. Leaks are not looked for there: the interpreter
# frees nothing when it ends; and memory that nobody has is refused, as the system would, not reported.
set(FENESTRA_SANITIZED OFF)
set(FENESTRA_TEST_TIMEOUT 600)
set(FENESTRA_KERNEL_OPTIONS)
set(FENESTRA_PYTHON_ENVIRONMENT)
if(CMAKE_CXX_FLAGS MATCHES "-fsanitize=")
  set(FENESTRA_SANITIZED ON)
  set(FENESTRA_TEST_TIMEOUT 6000)
endif()
if(CMAKE_CXX_FLAGS MATCHES "-fsanitize=[a-z,-]*undefined" AND CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  set(FENESTRA_KERNEL_OPTIONS -fno-sanitize=pointer-overflow,null,alignment,object-size)
endif()
if(CMAKE_CXX_FLAGS MATCHES "-fsanitize=[a-z,-]*address")
  set(runtime libasan.so)
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    list(APPEND FENESTRA_KERNEL_OPTIONS "SHELL:-mllvm -asan-instrumentation-with-call-threshold=0")
    set(runtime "libclang_rt.asan-${CMAKE_SYSTEM_PROCESSOR}.so")
  endif()
  set(preload)
  foreach(library ${runtime} libstdc++.so.6)
    execute_process(COMMAND "${CMAKE_CXX_COMPILER}" "-print-file-name=${library}"
                    OUTPUT_VARIABLE path OUTPUT_STRIP_TRAILING_WHITESPACE)
    list(APPEND preload "${path}")
  endforeach()
  list(JOIN preload ":" preload)
  set(FENESTRA_PYTHON_ENVIRONMENT "LD_PRELOAD=${preload}" "ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1:max_allocation_size_mb=4096"
                                  "PYTHONMALLOC=malloc")
endif()
