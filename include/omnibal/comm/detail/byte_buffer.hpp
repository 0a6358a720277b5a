#pragma once

/// \file
/// Memory for messages.

#include <cstddef>
#include <memory>
#include <span>

namespace omnibal::inline v0::detail {

/// Bytes that are not initialised. Allocates only beyond the largest size so far.
class byte_buffer {
 public:
  /// So many bytes with any contents; what was taken before is gone.
  [[nodiscard]] std::span<std::byte> take(std::size_t bytes) {
    if (bytes > capacity_) {
      bytes_.reset();
      capacity_ = 0;
      bytes_ = std::make_unique_for_overwrite<std::byte[]>(bytes);
      capacity_ = bytes;
    }
    return {bytes_.get(), bytes};
  }

 private:
  std::unique_ptr<std::byte[]> bytes_;
  std::size_t capacity_ = 0;
};

}  // namespace omnibal::inline v0::detail
