# What the folder adds to the library and the tests.
set(operator_loops kernels/runs.cpp)
