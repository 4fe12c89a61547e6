# What the folder adds to the library and the tests.
set(operator_sources
    candidates.cpp
    fused.cpp
    kernels/choice.cpp
    kernels/dense.cpp
    kernels/dense_choice.cpp
    kernels/dense_tiles.cpp
    kernels/depthwise.cpp
    kernels/depthwise_tiles.cpp
    kernels/direct.cpp
    kernels/direct_tiles.cpp
    kernels/gemm.cpp
    kernels/gemm_blocked.cpp
    kernels/outer.cpp
    kernels/outer_choice.cpp
    kernels/outer_tiles.cpp
    kernels/planes.cpp
    kernels/planes_tiles.cpp
    kernels/samples.cpp
    kernels/samples_tiles.cpp
    kernels/winograd.cpp
    kernels/winograd_tiles.cpp
    kernels/winograd_weights.cpp
    kernels/patches.cpp
    kernels/patches_cells.cpp)
set(operator_tests
    test.cpp
    kernels/candidates_test.cpp
    kernels/bits_test.cpp
    kernels/dense_test.cpp
    kernels/depthwise_test.cpp
    kernels/direct_test.cpp
    kernels/outer_test.cpp
    kernels/packed_test.cpp
    kernels/planes_test.cpp
    kernels/samples_test.cpp
    kernels/winograd_test.cpp
    kernels/winograd_law_test.cpp)
if(TARGET DNNL::dnnl)
  list(APPEND operator_sources kernels/onednn.cpp)
  list(APPEND operator_tests kernels/onednn_test.cpp)
endif()
