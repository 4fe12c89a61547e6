# Turns the one list of operators, fenestra/ops/operators.txt, into what the build needs:
#   FENESTRA_OPERATORS     folders, in the order of the list; `pool/max` is a member of the family `pool`
#   FENESTRA_FAMILIES      folders of families, which hold what their members share
#   FENESTRA_GENERATED     include root of the generated headers
#   FENESTRA_ENTRY_SOURCES  one translation unit per operator, which gives it without its type
#   FENESTRA_LAWS_SOURCES  likewise for their laws, so that they compile in parallel
#   FENESTRA_KERNEL_LAWS_SOURCES  likewise for the laws on kernels
#   FENESTRA_PYTHON_SOURCES  likewise for Python, of the operators whose folder has a signature.hpp
#   FENESTRA_OPERATOR_SOURCES, FENESTRA_OPERATOR_LOOPS, FENESTRA_OPERATOR_TESTS
#                          what the folders' own sources.cmake name beside test.cpp, from fenestra/ on:
#                          operator_sources, operator_loops (plain loops that the compiler is to
#                          vectorise) and operator_tests
#   FENESTRA_OPERATOR_RULES  the rules.cpp of the folders
# and the headers <fenestra/ops/list.hpp> (descriptors), <fenestra/ops/all.hpp> (operators),
# <fenestra/ops/all_rules.hpp> (rules that their headers leave out), <fenestra/ops/calls.hpp> (for
# those who only call them) and <fenestra/ops/typed_all.hpp> (on typed variables), of the folders that
# have a rules.hpp, call.hpp, typed.hpp. An operator needs no other line in the build. What a folder may
# hold, the folder of its family may hold for all members: rules.cpp, call.cpp, sources.cmake, these
# headers and the one of its own name.

# The name of the operator in a folder: pool/max is max_pool.
function(fenestra_name_of operator result)
  string(REGEX REPLACE "^(.*)/(.*)$" "\\2_\\1" name ${operator})
  set(${result} ${name} PARENT_SCOPE)
endfunction()

# The descriptor of an operator's folder: conv_transpose has ConvTranspose, pool/max has MaxPool.
function(fenestra_type_of operator result)
  fenestra_name_of(${operator} name)
  string(REPLACE "_" ";" words ${name})
  set(type)
  foreach(word IN LISTS words)
    string(SUBSTRING ${word} 0 1 initial)
    string(SUBSTRING ${word} 1 -1 rest)
    string(TOUPPER ${initial} initial)
    string(APPEND type "${initial}${rest}")
  endforeach()
  set(${result} ${type} PARENT_SCOPE)
endfunction()

set(FENESTRA_GENERATED "${PROJECT_BINARY_DIR}/generated")
set(FENESTRA_OPERATORS)
set(FENESTRA_FAMILIES)
set(engine_folders)
set(FENESTRA_ENTRY_SOURCES)
set(FENESTRA_LAWS_SOURCES)
set(FENESTRA_KERNEL_LAWS_SOURCES)
set(FENESTRA_PYTHON_SOURCES)
set(FENESTRA_OPERATOR_SOURCES)
set(FENESTRA_OPERATOR_LOOPS)
set(FENESTRA_OPERATOR_RULES)
set(FENESTRA_OPERATOR_TESTS)

set(operators_file "${PROJECT_SOURCE_DIR}/fenestra/ops/operators.txt")
set_property(DIRECTORY "${PROJECT_SOURCE_DIR}" APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
                                                               "${operators_file}")
file(STRINGS "${operators_file}" lines)
foreach(line IN LISTS lines)
  if(line MATCHES "^@engine:([^#]*)")
    separate_arguments(engine_folders UNIX_COMMAND "${CMAKE_MATCH_1}")
    continue()
  endif()
  string(REGEX REPLACE "[#:].*" "" operator "${line}")  # uses are for scripts/check_layers
  string(STRIP "${operator}" operator)
  if(operator STREQUAL "")
    continue()
  endif()
  if(NOT operator MATCHES "^([a-z][a-z0-9]*/)?[a-z][a-z0-9]*(_[a-z0-9]+)*$")
    message(FATAL_ERROR "operators.txt: '${operator}' is not the name of a folder in snake_case")
  endif()
  if(operator IN_LIST FENESTRA_OPERATORS)
    message(FATAL_ERROR "operators.txt: '${operator}' is listed twice")
  endif()
  foreach(file op.hpp test.cpp)
    if(NOT EXISTS "${PROJECT_SOURCE_DIR}/fenestra/ops/${operator}/${file}")
      message(FATAL_ERROR "operators.txt lists '${operator}', but there is no "
                          "fenestra/ops/${operator}/${file}")
    endif()
  endforeach()
  list(APPEND FENESTRA_OPERATORS ${operator})
endforeach()

set(includes)
set(python_declarations)
set(python_calls)
set(public_includes)
set(rule_includes)
set(call_includes)
set(call_sources)
set(typed_includes)
set(types)

# What a folder below fenestra/ops brings to the library and the tests: an operator's or a family's.
macro(fenestra_add_folder folder)
  set(path "${PROJECT_SOURCE_DIR}/fenestra/ops/${folder}")
  if(EXISTS "${path}/${folder}.hpp")
    string(APPEND public_includes "#include <fenestra/ops/${folder}/${folder}.hpp>\n")
  endif()
  if(EXISTS "${path}/rules.hpp")
    string(APPEND rule_includes "#include <fenestra/ops/${folder}/rules.hpp>\n")
  endif()
  if(EXISTS "${path}/call.hpp")
    string(APPEND call_includes "#include <fenestra/ops/${folder}/call.hpp>\n")
  elseif(EXISTS "${path}/${folder}.hpp")
    string(APPEND call_includes "#include <fenestra/ops/${folder}/${folder}.hpp>\n")
  endif()
  if(EXISTS "${path}/typed.hpp")
    string(APPEND typed_includes "#include <fenestra/ops/${folder}/typed.hpp>\n")
  endif()
  set(operator_sources)
  set(operator_loops)
  set(operator_tests)
  if(EXISTS "${path}/test.cpp")
    set(operator_tests test.cpp)
  endif()
  include("${path}/sources.cmake" OPTIONAL)
  if(EXISTS "${path}/rules.cpp")
    list(APPEND FENESTRA_OPERATOR_RULES "ops/${folder}/rules.cpp")
  endif()
  if(EXISTS "${path}/call.cpp")
    list(APPEND call_sources "ops/${folder}/call.cpp")
  endif()
  foreach(file IN LISTS operator_sources)
    list(APPEND FENESTRA_OPERATOR_SOURCES "ops/${folder}/${file}")
  endforeach()
  foreach(file IN LISTS operator_loops)
    list(APPEND FENESTRA_OPERATOR_LOOPS "ops/${folder}/${file}")
  endforeach()
  foreach(file IN LISTS operator_tests)
    list(APPEND FENESTRA_OPERATOR_TESTS "ops/${folder}/${file}")
  endforeach()
endmacro()

foreach(operator IN LISTS FENESTRA_OPERATORS)
  fenestra_name_of(${operator} name)
  fenestra_type_of(${operator} type)
  list(APPEND types ${type})
  string(APPEND includes "#include <fenestra/ops/${operator}/op.hpp>\n")
  cmake_path(GET operator PARENT_PATH family)
  if(family AND NOT family IN_LIST FENESTRA_FAMILIES)
    list(APPEND FENESTRA_FAMILIES ${family})
    fenestra_add_folder(${family})
  endif()
  fenestra_add_folder(${operator})
  set(source "${PROJECT_BINARY_DIR}/entries/entry_${name}.cpp")
  configure_file(cmake/entry.cpp.in "${source}" @ONLY)
  list(APPEND FENESTRA_ENTRY_SOURCES "${source}")
  set(source "${PROJECT_BINARY_DIR}/laws/laws_${name}.cpp")
  configure_file(cmake/laws.cpp.in "${source}" @ONLY)
  list(APPEND FENESTRA_LAWS_SOURCES "${source}")
  set(source "${PROJECT_BINARY_DIR}/laws/kernel_laws_${name}.cpp")
  configure_file(cmake/kernel_laws.cpp.in "${source}" @ONLY)
  list(APPEND FENESTRA_KERNEL_LAWS_SOURCES "${source}")
  if(EXISTS "${path}/signature.hpp")
    set(source "${PROJECT_BINARY_DIR}/bindings/python_${name}.cpp")
    configure_file(cmake/python_operator.cpp.in "${source}" @ONLY)
    list(APPEND FENESTRA_PYTHON_SOURCES "${source}")
    string(APPEND python_declarations "void declare_${name}(Declarer& declarer);\n")
    string(APPEND python_calls "  declare_${name}(declarer);\n")
  endif()
endforeach()
# What the engine itself calls is there whatever else the list names.
foreach(operator IN LISTS engine_folders)
  if(NOT operator IN_LIST FENESTRA_OPERATORS)
    fenestra_add_folder(${operator})
  endif()
endforeach()
list(APPEND FENESTRA_OPERATOR_SOURCES ${call_sources})
set(source "${PROJECT_BINARY_DIR}/bindings/python_operators.cpp")
configure_file(cmake/python_operators.cpp.in "${source}" @ONLY)
list(APPEND FENESTRA_PYTHON_SOURCES "${source}")
list(JOIN types ",\n                           " types)
configure_file(cmake/list.hpp.in "${FENESTRA_GENERATED}/fenestra/ops/list.hpp" @ONLY)
configure_file(cmake/all.hpp.in "${FENESTRA_GENERATED}/fenestra/ops/all.hpp" @ONLY)
configure_file(cmake/all_rules.hpp.in "${FENESTRA_GENERATED}/fenestra/ops/all_rules.hpp" @ONLY)
configure_file(cmake/calls.hpp.in "${FENESTRA_GENERATED}/fenestra/ops/calls.hpp" @ONLY)
configure_file(cmake/typed_all.hpp.in "${FENESTRA_GENERATED}/fenestra/ops/typed_all.hpp" @ONLY)

# The layers of networks.txt travel inside the tool.
set(networks_file "${PROJECT_SOURCE_DIR}/fenestra/check/networks.txt")
set_property(DIRECTORY "${PROJECT_SOURCE_DIR}" APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
                                                               "${networks_file}")
file(READ "${networks_file}" networks)
configure_file(cmake/networks.hpp.in "${FENESTRA_GENERATED}/fenestra/check/networks.hpp" @ONLY)
