// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Compiler facts. Every macro of the library is defined here or in version.hpp.

#include <cstdint>

/// Marks a function that both host code and CUDA kernels may call.
#if defined(__CUDACC__)
#define OMNIBAL_HOST_DEVICE __host__ __device__
#else
#define OMNIBAL_HOST_DEVICE
#endif

#if !defined(__SIZEOF_INT128__)
#error "omnibal needs a compiler with a 128-bit integer type"
#endif

#if !defined(__cpp_exceptions)
#error "omnibal reports errors as exceptions and needs -fexceptions"
#endif

namespace omnibal::inline v0::detail {

/// 128-bit integers for sums of 64-bit weights and for products of two weights.
__extension__ typedef unsigned __int128 uint128;
__extension__ typedef __int128 int128;

}  // namespace omnibal::inline v0::detail
