# Finds the interpreter, and what the Python module needs besides: FENESTRA_PYTHON_FOUND.
#
# The distribution's interpreter comes first even where another python3 is found earlier in PATH: it
# is the one that sees the distribution's NumPy and pybind11. -DPython_EXECUTABLE=... chooses another.

set(distribution_python "/usr/bin/python3")
if(NOT DEFINED Python_EXECUTABLE AND EXISTS "${distribution_python}")
  set(Python_EXECUTABLE "${distribution_python}" CACHE FILEPATH "The Python interpreter")
endif()
find_package(Python 3.9 COMPONENTS Interpreter OPTIONAL_COMPONENTS Development.Module)

set(FENESTRA_PYTHON_FOUND FALSE)
if(Python_Development.Module_FOUND)
  execute_process(COMMAND "${Python_EXECUTABLE}" -c "import numpy" RESULT_VARIABLE no_numpy
                  OUTPUT_QUIET ERROR_QUIET)
  set(PYBIND11_FINDPYTHON ON)
  find_package(pybind11 2.10 CONFIG)
  if(pybind11_FOUND AND no_numpy EQUAL 0)
    set(FENESTRA_PYTHON_FOUND TRUE)
  endif()
endif()
