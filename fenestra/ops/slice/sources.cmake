# What the folder adds to the library and the tests.
set(operator_sources kernels/region.cpp)
