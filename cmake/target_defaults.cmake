# What every target compiled here is given; what users of the library inherit is set on the library.
include(CheckPIESupported)
check_pie_supported(LANGUAGES CXX)

# For the shared library: what nobody calls is left out, its own calls are bound within it, and relocations
# are packed where linker and C library know that form.
set(FENESTRA_SHARED_LINK_OPTIONS)
if(CMAKE_SYSTEM_NAME STREQUAL "Linux")
  set(FENESTRA_SHARED_LINK_OPTIONS -Wl,--gc-sections -Wl,-Bsymbolic-functions)
  include(CheckLinkerFlag)
  include(CheckCXXSourceCompiles)
  check_linker_flag(CXX -Wl,-z,pack-relative-relocs FENESTRA_LINKER_PACKS_RELOCATIONS)
  check_cxx_source_compiles("#include <features.h>
  #if !__GLIBC_PREREQ(2, 36)
  #error its loader does not read them
  #endif
  int main() {}" FENESTRA_LOADER_READS_PACKED_RELOCATIONS)
  if(FENESTRA_LINKER_PACKS_RELOCATIONS AND FENESTRA_LOADER_READS_PACKED_RELOCATIONS)
    list(APPEND FENESTRA_SHARED_LINK_OPTIONS -Wl,-z,pack-relative-relocs)
  endif()
endif()

# As Debian builds its packages, and what its next release adds (stack clash, control flow): for whatever
# is compiled, and again for whatever is linked. FORTIFY is for optimised code only.
function(fenestra_harden target)
  if(NOT FENESTRA_HARDEN OR NOT CMAKE_SYSTEM_NAME STREQUAL "Linux")
    return()
  endif()
  target_compile_options(
    ${target} PRIVATE -fstack-protector-strong -fstack-clash-protection -Wformat
                      -Werror=format-security)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|i[3-6]86)$")
    target_compile_options(${target} PRIVATE -fcf-protection)
  endif()
  if(NOT FENESTRA_SANITIZED AND NOT CMAKE_CXX_FLAGS MATCHES "_FORTIFY_SOURCE")
    target_compile_options(${target} PRIVATE $<$<CONFIG:Release,RelWithDebInfo,MinSizeRel>:-D_FORTIFY_SOURCE=2>)
  endif()
  target_link_options(${target} PRIVATE -Wl,-z,relro -Wl,-z,now)
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON)
endfunction()

function(fenestra_target_defaults target)
  target_compile_features(${target} PRIVATE cxx_std_20)
  # No contraction: a sum must round as the error bounds and the intervals say it rounds.
  target_compile_options(
    ${target} PRIVATE -Wall -Wextra -Wpedantic -Wconversion -Wshadow -ffp-contract=off
                      $<$<BOOL:${FENESTRA_WERROR}>:-Werror>)
  # GCC 12 sees overlapping copies inside std::string's own operator+, and uninitialised members in
  # optionals and SIMD tiles that are written before they are read; both are false.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    target_compile_options(${target} PRIVATE -Wno-restrict -Wno-maybe-uninitialized)
  endif()
  # What is copied and cleared here is mostly shapes and geometries of a hundred bytes or two, for which GCC
  # takes string instructions that need some thirty cycles to begin. With loops over vectors in eleven of the
  # sources a 3x3 convolution on 8x8 takes 0.79 us, 0.91 without.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|i[3-6]86)$")
    foreach(what IN ITEMS memcpy memset)
      target_compile_options(
        ${target} PRIVATE -m${what}-strategy=vector_loop:1024:noalign,libcall:-1:noalign)
    endforeach()
  endif()
  set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF CXX_VISIBILITY_PRESET hidden
                                             VISIBILITY_INLINES_HIDDEN ON)
  fenestra_harden(${target})
endfunction()

# For targets whose code is mostly template instantiations that run briefly: tests and examples; what
# takes time runs in the library. Full optimisation would double their compile time and save nothing.
function(fenestra_build_quickly target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
  if(FENESTRA_SANITIZED) # what is watched is five times as much to optimise
    target_compile_options(${target} PRIVATE -O0)
  endif()
endfunction()

# For targets that take longer to compile than they ever run: laws, parsing of command lines.
function(fenestra_build_most_quickly target)
  # FORTIFY needs an optimiser.
  target_compile_options(${target} PRIVATE "$<$<CONFIG:Release>:SHELL:-O0 -U_FORTIFY_SOURCE>")
  if(FENESTRA_SANITIZED)
    target_compile_options(${target} PRIVATE -O0)
  endif()
endfunction()

# For targets with one generated source per operator: sources that instantiate the same templates
# cost a quarter when many of them are compiled as one, where FENESTRA_COMPILE_TOGETHER says so.
# Those named stay on their own.
function(fenestra_compile_together target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${FENESTRA_COMPILE_TOGETHER} UNITY_BUILD_BATCH_SIZE 11)
  set_source_files_properties(${ARGN} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()
