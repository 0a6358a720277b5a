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

# omnibal::torch, where libtorch is installed. A consumer of the package asks for the component `torch`.
option(OMNIBAL_WITH_TORCH "Offer omnibal::torch where libtorch is installed" ON)
if(OMNIBAL_WITH_TORCH)
  find_package(Torch QUIET)
endif()
if(TORCH_FOUND)
  include("${PROJECT_SOURCE_DIR}/cmake/omnibal-torch.cmake")
endif()

# omnibal_switch(name needed): OMNIBAL_WITH_<NAME> of the component, which needs what is named.
function(omnibal_switch name needed)
  string(TOUPPER "OMNIBAL_WITH_${name}" switch)
  set(${switch}
      AUTO
      CACHE STRING "Offer omnibal::${name}: AUTO (where ${needed} is installed), ON or OFF")
  set_property(CACHE ${switch} PROPERTY STRINGS AUTO ON OFF)
endfunction()

# omnibal_offer(name hint): the target omnibal::<name>, unless omnibal_<name>_missing says why there
# is none. That is an error, which ends with the hint, where the switch is ON; with AUTO a message.
function(omnibal_offer name hint)
  string(TOUPPER "OMNIBAL_WITH_${name}" switch)
  set(missing "${omnibal_${name}_missing}")
  if(NOT missing)
    include("${PROJECT_SOURCE_DIR}/cmake/omnibal-${name}.cmake")
  elseif("${${switch}}" STREQUAL "AUTO")
    message(STATUS "omnibal::${name} is off: ${missing}")
  else()
    message(FATAL_ERROR "${switch} is ${${switch}}, but ${missing}. ${hint}")
  endif()
endfunction()

# omnibal::cuda, where the CUDA toolkit is installed. A consumer of the package asks for the component
# `cuda`.
omnibal_switch(cuda "a CUDA toolkit")
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
  omnibal_offer(cuda "CUDAToolkit_ROOT names the folder of a toolkit.")
endif()

# omnibal::nccl, where NCCL is installed beside it. A consumer of the package asks for the component
# `nccl`.
omnibal_switch(nccl NCCL)
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
  omnibal_offer(nccl "NCCL_ROOT names the folder of an installation.")
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
              "${PROJECT_SOURCE_DIR}/cmake/omnibal-torch.cmake"
              "${PROJECT_SOURCE_DIR}/cmake/omnibal-cuda.cmake"
              "${PROJECT_SOURCE_DIR}/cmake/omnibal-nccl.cmake"
              "${PROJECT_SOURCE_DIR}/cmake/FindNCCL.cmake"
        DESTINATION "${omnibal_package_dir}")
