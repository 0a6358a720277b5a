# SPDX-License-Identifier: Apache-2.0
# The target omnibal::torch, for omnibal/comm/c10d.hpp. Needs omnibal::omnibal and what
# find_package(Torch) gives.

add_library(omnibal::torch INTERFACE IMPORTED GLOBAL)
target_link_libraries(omnibal::torch INTERFACE omnibal::omnibal ${TORCH_LIBRARIES})
target_include_directories(omnibal::torch SYSTEM INTERFACE ${TORCH_INCLUDE_DIRS})
