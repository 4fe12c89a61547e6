# Finds GMP with its C++ interface, which installs no CMake package: the target GMP::gmpxx.
find_path(GMP_INCLUDE_DIR gmpxx.h)
find_library(GMP_LIBRARY gmp)
find_library(GMPXX_LIBRARY gmpxx)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(GMP REQUIRED_VARS GMPXX_LIBRARY GMP_LIBRARY GMP_INCLUDE_DIR)
mark_as_advanced(GMP_INCLUDE_DIR GMP_LIBRARY GMPXX_LIBRARY)

if(GMP_FOUND AND NOT TARGET GMP::gmpxx)
  add_library(GMP::gmpxx INTERFACE IMPORTED)
  target_include_directories(GMP::gmpxx INTERFACE "${GMP_INCLUDE_DIR}")
  target_link_libraries(GMP::gmpxx INTERFACE "${GMPXX_LIBRARY}" "${GMP_LIBRARY}")
endif()
