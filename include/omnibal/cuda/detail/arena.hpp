#pragma once

/// \file
/// Arrays of a block in shared or in device memory.

#include <omnibal/config.hpp>

#include <cstddef>

namespace omnibal::inline v0::gpu::detail {

/// What a block may ask of the shared memory: every device from compute capability 8.0 on has it,
/// with the block's own part.
inline constexpr std::size_t most_shared_bytes = 96 * 1024;

/// The alignment of every array of an arena, in bytes.
inline constexpr std::size_t arena_alignment = 16;

/// Adds up what is taken, in bytes. An arena is called like this one: algorithms take their arrays
/// by a template over it, so that what they take and what is counted cannot disagree.
class arena_meter {
 public:
  template <class T>
  [[nodiscard]] OMNIBAL_HOST_DEVICE T* take(std::size_t count) {
    bytes_ += (count * sizeof(T) + arena_alignment - 1) / arena_alignment * arena_alignment;
    return nullptr;
  }

  [[nodiscard]] std::size_t bytes() const { return bytes_; }

 private:
  std::size_t bytes_ = 0;
};

/// Arrays in the shared memory of a block.
template <class Block>
class shared_arena {
 public:
  OMNIBAL_HOST_DEVICE explicit shared_arena(Block& block) : block_(&block) {}

  template <class T>
  [[nodiscard]] OMNIBAL_HOST_DEVICE T* take(std::size_t count) {
    return block_->template shared<T>(count);
  }

 private:
  Block* block_;
};

/// Arrays in memory that is given. Precondition: it is aligned and large enough.
class memory_arena {
 public:
  OMNIBAL_HOST_DEVICE explicit memory_arena(unsigned char* memory) : memory_(memory) {}

  template <class T>
  [[nodiscard]] OMNIBAL_HOST_DEVICE T* take(std::size_t count) {
    T* const result = reinterpret_cast<T*>(memory_);
    memory_ += (count * sizeof(T) + arena_alignment - 1) / arena_alignment * arena_alignment;
    return result;
  }

 private:
  unsigned char* memory_;
};

/// The bytes that `take(arena)` takes.
template <class Take>
[[nodiscard]] std::size_t arena_bytes(Take const& take) {
  arena_meter meter;
  take(meter);
  return meter.bytes();
}

}  // namespace omnibal::inline v0::gpu::detail
