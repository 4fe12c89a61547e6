# What the folder adds to the library and the tests.
set(operator_sources evaluate.cpp kernels.cpp planes.cpp)
set(operator_tests test.cpp kernels_test.cpp)
