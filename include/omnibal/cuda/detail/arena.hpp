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

/// Where a block has its arrays: in its shared memory.
struct shared_arrays {
  template <class Block>
  [[nodiscard]] OMNIBAL_HOST_DEVICE Block& of(Block& block, std::size_t /*index*/) const {
    return block;
  }
};

/// Or in device memory, with so many bytes for each block.
struct scratch_arrays {
  unsigned char* scratch;
  std::size_t bytes;

  template <class Block>
  [[nodiscard]] OMNIBAL_HOST_DEVICE memory_arena of(Block& /*block*/, std::size_t index) const {
    return memory_arena(scratch + index * bytes);
  }
};

/// Blocks with arrays of so many bytes each, which run `make(arrays)`. Code is compiled for either
/// kind of memory: what may be either is slow to reach.
template <int Threads, class Backend, class Make>
void for_each_block_with_arrays(Backend& backend, std::size_t blocks, std::size_t bytes,
                                Make const& make) {
  if (bytes <= most_shared_bytes) {
    return backend.template for_each_block<Threads>(blocks, bytes, make(shared_arrays{}));
  }
  auto* const scratch = backend.template scratch<unsigned char>(bytes * blocks);
  backend.template for_each_block<Threads>(blocks, 0, make(scratch_arrays{scratch, bytes}));
}

/// The bytes that `take(arena)` takes.
template <class Take>
[[nodiscard]] std::size_t arena_bytes(Take const& take) {
  arena_meter meter;
  take(meter);
  return meter.bytes();
}

}  // namespace omnibal::inline v0::gpu::detail
