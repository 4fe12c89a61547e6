# What the folder adds to the library and the tests.
set(operator_loops kernels/loops.cpp kernels/runs.cpp kernels/sums.cpp)
set(operator_tests accuracy_test.cpp)
