# SPDX-License-Identifier: Apache-2.0
# The header-only library: its target and those of its components.

# The headers of another project's subdirectory do not change while that project is built.
set(omnibal_glob_options)
if(PROJECT_IS_TOP_LEVEL)
  set(omnibal_glob_options CONFIGURE_DEPENDS)
endif()
file(GLOB_RECURSE omnibal_headers ${omnibal_glob_options}
     "${PROJECT_SOURCE_DIR}/include/omnibal/*.hpp")
file(GLOB_RECURSE omnibal_cuda_headers ${omnibal_glob_options}
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

# Another project sees no warnings of the headers, nor checks them with its own.
if(NOT PROJECT_IS_TOP_LEVEL)
  set_target_properties(omnibal PROPERTIES SYSTEM ON VERIFY_INTERFACE_HEADER_SETS OFF)
endif()

# omnibal_switch(name needed): OMNIBAL_WITH_<NAME> of the component, which needs what is named. Sets
# omnibal_seek_<name> where that is to be looked for: not in a subdirectory of another project, unless
# the switch is ON, as looking leaves variables and targets behind. There the component is offered
# where the project itself has found what it needs.
function(omnibal_switch name needed)
  string(TOUPPER "OMNIBAL_WITH_${name}" switch)
  set(${switch}
      AUTO
      CACHE STRING "Offer omnibal::${name}: AUTO (where ${needed} is found), ON or OFF")
  set_property(CACHE ${switch} PROPERTY STRINGS AUTO ON OFF)
  set(seek OFF)
  if(${switch} AND (PROJECT_IS_TOP_LEVEL OR NOT "${${switch}}" STREQUAL "AUTO"))
    set(seek ON)
  endif()
  set(omnibal_seek_${name} ${seek} PARENT_SCOPE)
endfunction()

# omnibal_offer(name hint): the target omnibal::<name>, unless omnibal_<name>_missing says why there
# is none. That is an error, which ends with the hint, where the switch is ON; with AUTO a message.
function(omnibal_offer name hint)
  string(TOUPPER "OMNIBAL_WITH_${name}" switch)
  set(missing "${omnibal_${name}_missing}")
  set(message STATUS)
  if(NOT PROJECT_IS_TOP_LEVEL)
    set(message VERBOSE)
  endif()
  if(NOT missing)
    include("${PROJECT_SOURCE_DIR}/cmake/omnibal-${name}.cmake")
  elseif("${${switch}}" STREQUAL "AUTO")
    message(${message} "omnibal::${name} is off: ${missing}")
  else()
    message(FATAL_ERROR "${switch} is ${${switch}}, but ${missing}. ${hint}")
  endif()
endfunction()

# omnibal::mpi, where there is MPI. A consumer of the package asks for the component `mpi`.
omnibal_switch(mpi MPI)
if(OMNIBAL_WITH_MPI)
  set(omnibal_mpi_missing "")
  if(omnibal_seek_mpi)
    find_package(MPI QUIET COMPONENTS CXX)
  endif()
  # There is a target too where CMake has looked for MPI in vain.
  if(NOT TARGET MPI::MPI_CXX OR (DEFINED MPI_CXX_FOUND AND NOT MPI_CXX_FOUND))
    set(omnibal_mpi_missing "MPI was not found")
  endif()
  omnibal_offer(mpi "MPI_HOME names the folder of an installation.")
endif()

# omnibal::torch, where there is libtorch. A consumer of the package asks for the component `torch`.
omnibal_switch(torch libtorch)
set(omnibal_torch_missing "OMNIBAL_WITH_TORCH is OFF")
if(OMNIBAL_WITH_TORCH)
  set(omnibal_torch_missing "")
  if(omnibal_seek_torch)
    # Its packages warn, however quietly it is looked for, of libraries that few need (kineto, glog).
    set(CMAKE_MESSAGE_LOG_LEVEL ERROR)
    find_package(Torch QUIET)
    unset(CMAKE_MESSAGE_LOG_LEVEL)
  endif()
  if(NOT TORCH_FOUND)
    set(omnibal_torch_missing "libtorch was not found")
  endif()
  omnibal_offer(torch "Torch_DIR names the folder of its TorchConfig.cmake.")
endif()

# omnibal::cuda, where there is a CUDA toolkit. A consumer of the package asks for the component `cuda`.
omnibal_switch(cuda "a CUDA toolkit")
set(omnibal_cuda_missing "OMNIBAL_WITH_CUDA is OFF")
if(OMNIBAL_WITH_CUDA)
  set(omnibal_cuda_oldest 12.8)
  set(omnibal_cuda_missing "")
  if(omnibal_seek_cuda)
    include("${PROJECT_SOURCE_DIR}/cmake/omnibal-toolkit.cmake")
  endif()
  if(NOT CUDAToolkit_FOUND)
    set(omnibal_cuda_missing "no CUDA toolkit was found")
  elseif(CUDAToolkit_VERSION VERSION_LESS omnibal_cuda_oldest)
    set(omnibal_cuda_missing
        "the CUDA toolkit ${CUDAToolkit_VERSION} is older than ${omnibal_cuda_oldest}")
  endif()
  omnibal_offer(cuda "CUDAToolkit_ROOT names the folder of a toolkit.")
endif()

# omnibal::nccl, where there are the headers of NCCL beside it. A consumer of the package asks for the component `nccl`.
omnibal_switch(nccl NCCL)
set(omnibal_nccl_missing "OMNIBAL_WITH_NCCL is OFF")
if(OMNIBAL_WITH_NCCL)
  # The first with ncclCommSplit.
  set(omnibal_nccl_oldest 2.18)
  set(omnibal_nccl_missing "${omnibal_cuda_missing}")
  if(NOT omnibal_nccl_missing)
    if(omnibal_seek_nccl)
      list(PREPEND CMAKE_MODULE_PATH "${PROJECT_SOURCE_DIR}/cmake")
      find_package(NCCL QUIET)
      list(POP_FRONT CMAKE_MODULE_PATH)
    endif()
    if(NOT TARGET NCCL::headers AND NOT TARGET NCCL::nccl)
      set(omnibal_nccl_missing "NCCL was not found")
    elseif(NCCL_VERSION AND NCCL_VERSION VERSION_LESS omnibal_nccl_oldest)
      set(omnibal_nccl_missing "NCCL ${NCCL_VERSION} is older than ${omnibal_nccl_oldest}")
    endif()
  endif()
  omnibal_offer(nccl "NCCL_ROOT names the folder of an installation.")
endif()
