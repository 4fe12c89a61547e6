# What `cmake --install` copies: headers, library, tool with its manual page, and the files that find_package and
# pkg-config read. Everything is relative to the prefix, so an installed tree may be moved.
include(CMakePackageConfigHelpers)

set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/fenestra")

install(
  TARGETS fenestra_library fenestra_spec
  EXPORT fenestraTargets
  FILE_SET HEADERS
  FILE_SET generated)
install(EXPORT fenestraTargets NAMESPACE fenestra:: DESTINATION "${package_dir}")
if(FENESTRA_BUILD_TOOL)
  install(TARGETS fenestra_tool)
  if(FENESTRA_WRITTEN)
    install(FILES "${FENESTRA_WRITTEN}/fenestra.1" DESTINATION "${CMAKE_INSTALL_MANDIR}/man1")
    install(FILES "${FENESTRA_WRITTEN}/fenestra.bash" RENAME fenestra
            DESTINATION "${CMAKE_INSTALL_DATADIR}/bash-completion/completions")
    install(FILES "${FENESTRA_WRITTEN}/_fenestra"
            DESTINATION "${CMAKE_INSTALL_DATADIR}/zsh/site-functions")
  endif()
endif()

if(TARGET fenestra_mpi)
  install(TARGETS fenestra_mpi LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}/fenestra")
endif()

configure_package_config_file(
  cmake/fenestraConfig.cmake.in "${PROJECT_BINARY_DIR}/fenestraConfig.cmake"
  INSTALL_DESTINATION "${package_dir}" NO_SET_AND_CHECK_MACRO)
# Before 1.0 a minor release may break its users.
write_basic_package_version_file("${PROJECT_BINARY_DIR}/fenestraConfigVersion.cmake"
                                 COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/fenestraConfig.cmake"
              "${PROJECT_BINARY_DIR}/fenestraConfigVersion.cmake" DESTINATION "${package_dir}")

# The prefix as seen from the folder of fenestra.pc, which pkg-config knows as pcfiledir.
file(RELATIVE_PATH pc_prefix "/prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/prefix")
cmake_path(SET pc_prefix NORMALIZE "${pc_prefix}")
string(REGEX REPLACE "/$" "" pc_prefix "${pc_prefix}")
configure_file(cmake/fenestra.pc.in "${PROJECT_BINARY_DIR}/fenestra.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/fenestra.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")

# Where `digits_dataset` looks, seen from the library.
install(DIRECTORY data/digits DESTINATION "${CMAKE_INSTALL_DATADIR}/fenestra")

install(FILES LICENSE DESTINATION "${CMAKE_INSTALL_DOCDIR}")
