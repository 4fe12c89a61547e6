# What the folder adds to the library and the tests.
set(operator_sources
    candidates.cpp
    evaluate.cpp
    fused.cpp
    kernels_depthwise.cpp
    kernels_depthwise_tiles.cpp
    kernels_direct.cpp
    kernels_direct_tiles.cpp
    kernels_gemm.cpp
    kernels_gemm_blocked.cpp
    kernels_winograd.cpp
    kernels_winograd_tiles.cpp
    kernels_winograd_weights.cpp
    patches.cpp
    patches_cells.cpp)
set(operator_tests
    test.cpp
    kernels_test.cpp
    kernels_bits_test.cpp
    kernels_depthwise_test.cpp
    kernels_direct_test.cpp
    kernels_packed_test.cpp
    kernels_winograd_test.cpp
    kernels_winograd_law_test.cpp)
if(TARGET DNNL::dnnl)
  list(APPEND operator_sources kernels_onednn.cpp)
  list(APPEND operator_tests kernels_onednn_test.cpp)
endif()
