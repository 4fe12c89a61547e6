# What the family adds to the library and the tests.
set(operator_sources
    candidates.cpp
    kernels/gather.cpp
    kernels/planes_average.cpp
    kernels/planes_max.cpp
    kernels/positions.cpp
    kernels/rows_max.cpp
    kernels/rows_smooth.cpp
    kernels/rows_sum.cpp
    kernels/sweep_sum.cpp
    kernels/whole.cpp)
set(operator_tests max/kernels_test.cpp avg/kernels_test.cpp smooth_max/kernels_test.cpp
                   lp/kernels_test.cpp)
