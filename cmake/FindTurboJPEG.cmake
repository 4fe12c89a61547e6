# Finds the TurboJPEG interface of libjpeg-turbo: the target TurboJPEG::turbojpeg. Its own CMake package
# asks for the static libraries and for libjpeg's interface too.
find_path(TurboJPEG_INCLUDE_DIR turbojpeg.h)
find_library(TurboJPEG_LIBRARY turbojpeg)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(TurboJPEG REQUIRED_VARS TurboJPEG_LIBRARY TurboJPEG_INCLUDE_DIR)
mark_as_advanced(TurboJPEG_INCLUDE_DIR TurboJPEG_LIBRARY)

if(TurboJPEG_FOUND AND NOT TARGET TurboJPEG::turbojpeg)
  add_library(TurboJPEG::turbojpeg INTERFACE IMPORTED)
  target_include_directories(TurboJPEG::turbojpeg INTERFACE "${TurboJPEG_INCLUDE_DIR}")
  target_link_libraries(TurboJPEG::turbojpeg INTERFACE "${TurboJPEG_LIBRARY}")
endif()
