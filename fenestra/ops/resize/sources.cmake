# What the folder adds to the library and the tests.
set(operator_sources axis_map.cpp)
