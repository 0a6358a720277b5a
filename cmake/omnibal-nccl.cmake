# SPDX-License-Identifier: Apache-2.0
# The target omnibal::nccl, for the headers in omnibal/cuda/nccl. Needs omnibal::cuda and NCCL::nccl.
# C++ files may include the .hpp of that folder, CUDA files the .cuh too.

add_library(omnibal::nccl INTERFACE IMPORTED GLOBAL)
target_link_libraries(omnibal::nccl INTERFACE omnibal::cuda NCCL::nccl)
