# SPDX-License-Identifier: Apache-2.0
# The target omnibal::cuda, for the headers in omnibal/cuda. Needs omnibal::omnibal and the targets of
# CUDAToolkit. C++ files may include the .hpp of that folder, CUDA files the .cuh too.

add_library(omnibal::cuda INTERFACE IMPORTED GLOBAL)
target_link_libraries(omnibal::cuda INTERFACE omnibal::omnibal)

# The CUDA runtime that CMake links to CUDA files, so that a program has one: the static one unless
# CMAKE_CUDA_RUNTIME_LIBRARY says something else.
if(CMAKE_CUDA_RUNTIME_LIBRARY STREQUAL "Shared")
  target_link_libraries(omnibal::cuda INTERFACE CUDA::cudart)
elseif(CMAKE_CUDA_RUNTIME_LIBRARY STREQUAL "None")
  target_link_libraries(omnibal::cuda INTERFACE CUDA::toolkit)
else()
  target_link_libraries(omnibal::cuda INTERFACE CUDA::cudart_static)
endif()

# Not as the feature cuda_std_20, which CMake 3.25 does not know for CUDA 13.
target_compile_options(omnibal::cuda INTERFACE $<$<COMPILE_LANGUAGE:CUDA>:-std=c++20>)
