# SPDX-License-Identifier: Apache-2.0
# Looks for the CUDA toolkit. CMake 3.25.1, Debian 12's, ends with an error at a toolkit without nvToolsExt,
# as those from 13.0 on are, where a project needs CMake 3.25: it is told of an older one.
set(omnibal_minimum "${CMAKE_MINIMUM_REQUIRED_VERSION}")
set(CMAKE_MINIMUM_REQUIRED_VERSION 3.24)
find_package(CUDAToolkit QUIET)
set(CMAKE_MINIMUM_REQUIRED_VERSION "${omnibal_minimum}")
unset(omnibal_minimum)
