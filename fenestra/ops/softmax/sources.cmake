# What the folder adds to the library and the tests.
set(operator_sources kernels/exponentials.cpp)
set(operator_loops kernels/lines.cpp)
