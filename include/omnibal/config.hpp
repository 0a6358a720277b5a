#pragma once

/// \file
/// Compiler facts. Every macro of the library is defined here or in version.hpp.

#include <cstdint>

/// Marks a function that host code and CUDA kernels may both call.
#if defined(__CUDACC__)
#define OMNIBAL_HOST_DEVICE __host__ __device__
#else
#define OMNIBAL_HOST_DEVICE
#endif

#if !defined(__SIZEOF_INT128__)
#error "omnibal needs a compiler with a 128-bit integer type"
#endif

namespace omnibal::inline v0::detail {

/// Sums of 64-bit weights and products of two of them.
__extension__ typedef unsigned __int128 uint128;
__extension__ typedef __int128 int128;

}  // namespace omnibal::inline v0::detail
