# What the folder adds to the library and the tests.
set(operator_sources region.cpp)
