#pragma once

/// \file
/// Options of post-balancing on a stream.

#include <cstddef>
#include <optional>

namespace omnibal::inline v0::nccl {

struct post_balance_options {
  /// The most that a rank may send to another, in bytes, in the bounded form: a multiple of 16, of
  /// which 16 are the header. Equal on all ranks. Where it is not set the exact form is taken.
  std::optional<std::size_t> slot_bytes;
};

}  // namespace omnibal::inline v0::nccl
