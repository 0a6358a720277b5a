# SPDX-License-Identifier: Apache-2.0
# What `cmake --install` installs: the headers, the module, the package of CMake and the file of pkg-config. None of
# it depends on an architecture, so nothing goes into a lib/.

include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

set(OMNIBAL_INSTALL_CMAKEDIR
    "${CMAKE_INSTALL_DATADIR}/cmake/omnibal"
    CACHE STRING "Where the package of CMake is installed")

install(
  TARGETS omnibal
  EXPORT omnibal-targets
  FILE_SET HEADERS COMPONENT headers)
install(
  FILES "${PROJECT_SOURCE_DIR}/include/omnibal/omnibal.cppm"
  DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/omnibal"
  COMPONENT headers)
install(
  EXPORT omnibal-targets
  NAMESPACE omnibal::
  DESTINATION "${OMNIBAL_INSTALL_CMAKEDIR}"
  COMPONENT headers)

configure_package_config_file(
  "${PROJECT_SOURCE_DIR}/cmake/omnibal-config.cmake.in" "${PROJECT_BINARY_DIR}/omnibal-config.cmake"
  INSTALL_DESTINATION "${OMNIBAL_INSTALL_CMAKEDIR}")
write_basic_package_version_file(
  "${PROJECT_BINARY_DIR}/omnibal-config-version.cmake"
  COMPATIBILITY SameMinorVersion ARCH_INDEPENDENT)
install(
  FILES "${PROJECT_BINARY_DIR}/omnibal-config.cmake"
        "${PROJECT_BINARY_DIR}/omnibal-config-version.cmake"
        "${PROJECT_SOURCE_DIR}/cmake/omnibal-mpi.cmake"
        "${PROJECT_SOURCE_DIR}/cmake/omnibal-torch.cmake"
        "${PROJECT_SOURCE_DIR}/cmake/omnibal-cuda.cmake"
        "${PROJECT_SOURCE_DIR}/cmake/omnibal-toolkit.cmake"
        "${PROJECT_SOURCE_DIR}/cmake/omnibal-nccl.cmake"
        "${PROJECT_SOURCE_DIR}/cmake/FindNCCL.cmake"
  DESTINATION "${OMNIBAL_INSTALL_CMAKEDIR}"
  COMPONENT headers)

# Relative, so that the installed folder can be moved.
set(pkgconfig_dir "${CMAKE_INSTALL_DATADIR}/pkgconfig")
file(RELATIVE_PATH pkgconfig_to_prefix "${CMAKE_INSTALL_PREFIX}/${pkgconfig_dir}"
     "${CMAKE_INSTALL_PREFIX}")
string(REGEX REPLACE "/$" "" pkgconfig_to_prefix "${pkgconfig_to_prefix}")
file(RELATIVE_PATH prefix_to_include "${CMAKE_INSTALL_PREFIX}" "${CMAKE_INSTALL_FULL_INCLUDEDIR}")
configure_file("${PROJECT_SOURCE_DIR}/cmake/omnibal.pc.in" "${PROJECT_BINARY_DIR}/omnibal.pc" @ONLY)
install(
  FILES "${PROJECT_BINARY_DIR}/omnibal.pc"
  DESTINATION "${pkgconfig_dir}"
  COMPONENT headers)
