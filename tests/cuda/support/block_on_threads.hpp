#pragma once

// Runs the device's block on threads of the host: one thread for each of the device, barriers,
// shuffles and atomics as the device has them; and its grid, whose blocks run at once. Included
// after all headers of the standard library and before those of omnibal/cuda.

#include "device_atomics.hpp"

#include <array>
#include <barrier>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

namespace stand_in {

constexpr unsigned lanes = 32;

struct warp {
  std::barrier<> together{lanes};
  std::array<unsigned, lanes> values{};
};

struct thread_index {
  unsigned x = 0;
};

inline thread_local thread_index index;
inline thread_local thread_index block_index;
inline thread_local thread_index grid_size{1};
inline thread_local std::barrier<>* grid_barrier = nullptr;
inline thread_local std::barrier<>* block_barrier = nullptr;
inline thread_local warp* own_warp = nullptr;

/// Every lane shows its value and takes that of the lane `from`.
inline unsigned shuffle(unsigned value, unsigned from) {
  own_warp->values[index.x % lanes] = value;
  own_warp->together.arrive_and_wait();
  unsigned const result = own_warp->values[from];
  own_warp->together.arrive_and_wait();
  return result;
}

/// Every lane shows what it says and sees what all say.
inline unsigned ballot(bool says) {
  own_warp->values[index.x % lanes] = says ? 1u : 0u;
  own_warp->together.arrive_and_wait();
  unsigned result = 0;
  for (unsigned lane = 0; lane != lanes; ++lane) result |= own_warp->values[lane] << lane;
  own_warp->together.arrive_and_wait();
  return result;
}

inline void warp_barrier() { own_warp->together.arrive_and_wait(); }

inline void barrier() { block_barrier->arrive_and_wait(); }

}  // namespace stand_in

namespace cooperative_groups {

struct grid_group {
  void sync() const { stand_in::grid_barrier->arrive_and_wait(); }
};
inline grid_group this_grid() { return {}; }

}  // namespace cooperative_groups

#define __CUDA_ARCH__ 800
#define __device__
#define threadIdx stand_in::index
#define blockIdx stand_in::block_index
#define gridDim stand_in::grid_size
#define __syncthreads stand_in::barrier
#define __syncwarp stand_in::warp_barrier
// Other files of the program have functions of these names for one thread.
#define atomic_add atomic_add_on_threads
#define atomic_min atomic_min_on_threads
#define atomic_max atomic_max_on_threads
#define raise raise_on_threads

inline unsigned __shfl_down_sync(unsigned, unsigned value, unsigned distance) {
  unsigned const lane = stand_in::index.x % stand_in::lanes;
  return stand_in::shuffle(value, lane + distance < stand_in::lanes ? lane + distance : lane);
}
inline unsigned __shfl_up_sync(unsigned, unsigned value, unsigned distance) {
  unsigned const lane = stand_in::index.x % stand_in::lanes;
  return stand_in::shuffle(value, lane >= distance ? lane - distance : lane);
}
inline unsigned __shfl_sync(unsigned, unsigned value, unsigned lane) {
  return stand_in::shuffle(value, lane);
}
inline unsigned __ballot_sync(unsigned, int says) { return stand_in::ballot(says != 0); }

#include <omnibal/cuda/detail/device_block.cuh>
#include <omnibal/cuda/detail/device_grid.cuh>

namespace stand_in {

/// Calls `f(grid)` on `blocks` blocks of `Threads` threads that make one grid.
template <int Threads, class F>
void run_grid(unsigned blocks, std::size_t shared_bytes, F const& f) {
  using block_type = omnibal::gpu::detail::device_block<Threads>;
  std::size_t const words = (block_type::reserved_bytes + shared_bytes) / 16 * 2 + 2;
  std::vector<std::uint64_t> shared(blocks * words, 0xcdcdcdcdcdcdcdcdu);
  std::vector<std::uint64_t> exchange(omnibal::gpu::detail::grid_exchange_bytes / 8);
  auto const warps = std::make_unique<warp[]>(blocks * (Threads / lanes));
  std::barrier<> all(static_cast<std::ptrdiff_t>(blocks * Threads));
  std::vector<std::unique_ptr<std::barrier<>>> barriers;
  for (unsigned b = 0; b != blocks; ++b)
    barriers.push_back(std::make_unique<std::barrier<>>(Threads));
  std::vector<std::thread> threads;
  for (unsigned t = 0; t != blocks * Threads; ++t) {
    threads.emplace_back([&, t] {
      unsigned const b = t / Threads;
      index.x = t % Threads;
      block_index.x = b;
      grid_size.x = blocks;
      block_barrier = barriers[b].get();
      grid_barrier = &all;
      own_warp = &warps[t / lanes];
      omnibal::gpu::detail::device_grid<Threads> grid(
          reinterpret_cast<unsigned char*>(shared.data() + b * words),
          reinterpret_cast<unsigned char*>(exchange.data()));
      f(grid);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

/// Calls `f(block)` on `Threads` threads that make one block.
template <int Threads, class F>
void run_block(std::size_t shared_bytes, F const& f) {
  using block_type = omnibal::gpu::detail::device_block<Threads>;
  std::vector<std::uint64_t> shared((block_type::reserved_bytes + shared_bytes) / 8 + 1,
                                    0xcdcdcdcdcdcdcdcdu);
  auto const warps = std::make_unique<warp[]>(Threads / lanes);
  std::barrier<> together(Threads);
  std::vector<std::thread> threads;
  for (unsigned t = 0; t != Threads; ++t) {
    threads.emplace_back([&, t] {
      index.x = t;
      block_barrier = &together;
      own_warp = &warps[t / lanes];
      block_type block(reinterpret_cast<unsigned char*>(shared.data()));
      f(block);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace stand_in
