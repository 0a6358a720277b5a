# The header-only library: the target, its installation and its package.

include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

file(GLOB_RECURSE omnibal_headers CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/include/omnibal/*.hpp")
file(GLOB_RECURSE omnibal_cuda_headers CONFIGURE_DEPENDS
     "${PROJECT_SOURCE_DIR}/include/omnibal/*.cuh")

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
            ${omnibal_headers}
            ${omnibal_cuda_headers})

# omnibal::mpi, where MPI is installed. A consumer of the package asks for the component `mpi`.
option(OMNIBAL_WITH_MPI "Offer omnibal::mpi where MPI is installed" ON)
if(OMNIBAL_WITH_MPI)
  find_package(MPI QUIET COMPONENTS CXX)
endif()
if(MPI_CXX_FOUND)
  include("${PROJECT_SOURCE_DIR}/cmake/omnibal-mpi.cmake")
endif()

# omnibal::cuda, where the CUDA toolkit is installed. A consumer of the package asks for the component
# `cuda`. ON makes a missing or old toolkit an error.
set(OMNIBAL_WITH_CUDA
    AUTO
    CACHE STRING "Offer omnibal::cuda: AUTO (where a CUDA toolkit is installed), ON or OFF")
set_property(CACHE OMNIBAL_WITH_CUDA PROPERTY STRINGS AUTO ON OFF)
set(omnibal_cuda_missing "OMNIBAL_WITH_CUDA is OFF")
if(OMNIBAL_WITH_CUDA)
  set(omnibal_cuda_oldest 12.8)
  set(omnibal_cuda_missing "")
  find_package(CUDAToolkit QUIET)
  if(NOT CUDAToolkit_FOUND)
    set(omnibal_cuda_missing "no CUDA toolkit was found")
  elseif(CUDAToolkit_VERSION VERSION_LESS omnibal_cuda_oldest)
    set(omnibal_cuda_missing
        "the CUDA toolkit ${CUDAToolkit_VERSION} is older than ${omnibal_cuda_oldest}")
  endif()
  if(NOT omnibal_cuda_missing)
    include("${PROJECT_SOURCE_DIR}/cmake/omnibal-cuda.cmake")
  elseif(OMNIBAL_WITH_CUDA STREQUAL AUTO)
    message(STATUS "omnibal::cuda is off: ${omnibal_cuda_missing}")
  else()
    message(FATAL_ERROR "OMNIBAL_WITH_CUDA is ${OMNIBAL_WITH_CUDA}, but ${omnibal_cuda_missing}. "
                        "CUDAToolkit_ROOT names the folder of a toolkit.")
  endif()
endif()

# omnibal::nccl, where NCCL is installed beside it. A consumer of the package asks for the component
# `nccl`. ON makes a missing or old NCCL an error.
set(OMNIBAL_WITH_NCCL
    AUTO
    CACHE STRING "Offer omnibal::nccl: AUTO (where NCCL is installed), ON or OFF")
set_property(CACHE OMNIBAL_WITH_NCCL PROPERTY STRINGS AUTO ON OFF)
set(omnibal_nccl_missing "OMNIBAL_WITH_NCCL is OFF")
if(OMNIBAL_WITH_NCCL)
  # The first with ncclCommSplit.
  set(omnibal_nccl_oldest 2.18)
  set(omnibal_nccl_missing "${omnibal_cuda_missing}")
  if(NOT omnibal_nccl_missing)
    list(PREPEND CMAKE_MODULE_PATH "${PROJECT_SOURCE_DIR}/cmake")
    find_package(NCCL QUIET)
    list(POP_FRONT CMAKE_MODULE_PATH)
    if(NOT NCCL_FOUND)
      set(omnibal_nccl_missing "NCCL was not found")
    elseif(NCCL_VERSION VERSION_LESS omnibal_nccl_oldest)
      set(omnibal_nccl_missing "NCCL ${NCCL_VERSION} is older than ${omnibal_nccl_oldest}")
    endif()
  endif()
  if(NOT omnibal_nccl_missing)
    include("${PROJECT_SOURCE_DIR}/cmake/omnibal-nccl.cmake")
  elseif(OMNIBAL_WITH_NCCL STREQUAL AUTO)
    message(STATUS "omnibal::nccl is off: ${omnibal_nccl_missing}")
  else()
    message(FATAL_ERROR "OMNIBAL_WITH_NCCL is ${OMNIBAL_WITH_NCCL}, but ${omnibal_nccl_missing}. "
                        "NCCL_ROOT names the folder of an installation.")
  endif()
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
              "${PROJECT_SOURCE_DIR}/cmake/omnibal-cuda.cmake"
              "${PROJECT_SOURCE_DIR}/cmake/omnibal-nccl.cmake"
              "${PROJECT_SOURCE_DIR}/cmake/FindNCCL.cmake"
        DESTINATION "${omnibal_package_dir}")
