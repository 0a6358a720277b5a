#pragma once

/// \file
/// A backend that runs nothing and adds up the scratch that an algorithm takes.

#include <cstddef>
#include <type_traits>

namespace omnibal::inline v0::gpu::detail {

/// The most blocks of a grid.
inline constexpr std::size_t most_grid_blocks = 1024;

/// A value of at most 48 bytes for each block: twice, so that one is free while the other is read.
inline constexpr std::size_t grid_exchange_bytes = 2 * 48 * most_grid_blocks;

/// Has the members of a backend and does nothing in them: an algorithm that is run with it says how
/// much scratch it needs, so that the size and the use cannot disagree. The pointers that it gives
/// are not null and must not be looked at.
class scratch_meter {
 public:
  template <class T>
    requires std::is_trivially_copyable_v<T>
  [[nodiscard]] T* scratch(std::size_t count) {
    auto* const result = reinterpret_cast<T*>(alignment + bytes_);
    bytes_ += (count * sizeof(T) + alignment - 1) / alignment * alignment;
    return result;
  }

  template <class F>
  void for_each(std::size_t, F const&) {}
  template <int Threads, class F>
  void for_each_block(std::size_t, std::size_t, F const&) {}
  template <int Threads, class F>
  void for_grid(std::size_t, std::size_t, F const&) {
    static_cast<void>(scratch<unsigned char>(grid_exchange_bytes));
  }

  template <class Key, class Value>
  void sort_pairs(Key*, Value*, std::size_t, int = 0, int = static_cast<int>(8 * sizeof(Key))) {}

  template <class T>
  void fill_zero(T*, std::size_t) {}

  /// The scratch taken so far, each array rounded up to the alignment.
  [[nodiscard]] std::size_t scratch_bytes() const { return bytes_; }

  /// The alignment of each array of scratch, in bytes.
  static constexpr std::size_t alignment = 256;

 private:
  std::size_t bytes_ = 0;
};

}  // namespace omnibal::inline v0::gpu::detail
