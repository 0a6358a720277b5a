# SPDX-License-Identifier: Apache-2.0
# The target omnibal::nccl, for the headers in omnibal/cuda/nccl. Needs omnibal::cuda and the headers of NCCL: the
# target NCCL::headers, or a NCCL::nccl of another project. Programs are not linked with NCCL; they find it
# when they run. C++ files may include the .hpp of that folder, CUDA files the .cuh too.

add_library(omnibal::nccl INTERFACE IMPORTED GLOBAL)
target_link_libraries(omnibal::nccl INTERFACE omnibal::cuda ${CMAKE_DL_LIBS})
if(TARGET NCCL::headers)
  target_link_libraries(omnibal::nccl INTERFACE NCCL::headers)
else()
  target_include_directories(
    omnibal::nccl INTERFACE $<TARGET_PROPERTY:NCCL::nccl,INTERFACE_INCLUDE_DIRECTORIES>)
endif()
