# What the folder adds to the library and the tests.
set(operator_sources evaluate.cpp loops.cpp)
set(operator_tests accuracy_test.cpp)
