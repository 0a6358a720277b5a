# The header-only library: the target, its installation and its package.

include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

file(GLOB_RECURSE omnibal_headers CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/include/omnibal/*.hpp")

add_library(omnibal INTERFACE)
add_library(omnibal::omnibal ALIAS omnibal)
target_compile_features(omnibal INTERFACE cxx_std_20)
target_sources(
  omnibal
  INTERFACE FILE_SET
            HEADERS
            BASE_DIRS
            "${PROJECT_SOURCE_DIR}/include"
            FILES
            ${omnibal_headers})

# omnibal::mpi, where MPI is installed. A consumer of the package asks for the component `mpi`.
option(OMNIBAL_WITH_MPI "Offer omnibal::mpi where MPI is installed" ON)
if(OMNIBAL_WITH_MPI)
  find_package(MPI QUIET COMPONENTS CXX)
endif()
if(MPI_CXX_FOUND)
  include("${PROJECT_SOURCE_DIR}/cmake/omnibal-mpi.cmake")
endif()

set(omnibal_package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/omnibal")
install(
  TARGETS omnibal
  EXPORT omnibal-targets
  FILE_SET HEADERS)
install(
  EXPORT omnibal-targets
  NAMESPACE omnibal::
  DESTINATION "${omnibal_package_dir}")

configure_package_config_file(
  "${PROJECT_SOURCE_DIR}/cmake/omnibal-config.cmake.in" "${PROJECT_BINARY_DIR}/omnibal-config.cmake"
  INSTALL_DESTINATION "${omnibal_package_dir}")
write_basic_package_version_file(
  "${PROJECT_BINARY_DIR}/omnibal-config-version.cmake"
  COMPATIBILITY SameMinorVersion ARCH_INDEPENDENT)
install(FILES "${PROJECT_BINARY_DIR}/omnibal-config.cmake"
              "${PROJECT_BINARY_DIR}/omnibal-config-version.cmake"
              "${PROJECT_SOURCE_DIR}/cmake/omnibal-mpi.cmake"
        DESTINATION "${omnibal_package_dir}")
