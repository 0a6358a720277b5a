// SPDX-License-Identifier: Apache-2.0
// Evaluates host-and-device code on the host and in a kernel and demands equal results. Returns 77
// where there is no device.

#include <omnibal/grouping.hpp>
#include <omnibal/resources.hpp>
#include <omnibal/rng/engine.hpp>
#include <omnibal/rng/feistel.hpp>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace {

constexpr std::uint64_t count = 10'000;
constexpr int no_device = 77;

// Three groups: {3, 1}, {}, {0, 2, 4}.
struct groups {
  std::uint32_t offsets[4] = {0, 2, 2, 5};
  std::uint32_t items[5] = {3, 1, 0, 2, 4};
};

OMNIBAL_HOST_DEVICE std::uint64_t sum_of_group(groups const& storage, std::size_t group) {
  omnibal::grouping_view const view(storage.offsets, storage.items, 3);
  std::uint64_t sum = view.size() + view.item_count() + view.group_size(group);
  for (std::size_t k = view.offset(group); k != view.offset(group + 1); ++k) {
    sum += (k + 1) * view.item(k);
  }
  return sum;
}

OMNIBAL_HOST_DEVICE std::uint64_t answer(groups const& storage, std::uint64_t i) {
  omnibal::rng::engine words(42, i);
  auto const order = omnibal::rng::feistel{7}.order(count, 3);
  auto const image = order(i);
  auto const load = omnibal::resources{std::int64_t{1}, static_cast<std::int64_t>(image)} +
                    omnibal::resources{2, 3};

  std::uint64_t result = words();
  result ^= omnibal::rng::below(words, i + 1) << 8;
  result += image * 31 + order.inverse(image);
  if (load.fits(omnibal::resources{3, 5000})) ++result;
  return result + sum_of_group(storage, i % 3);
}

__global__ void answer_all(groups storage, std::uint64_t* answers) {
  std::uint64_t const i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < count) answers[i] = answer(storage, i);
}

void check(cudaError_t status) {
  if (status == cudaSuccess) return;
  std::fprintf(stderr, "CUDA: %s\n", cudaGetErrorString(status));
  std::exit(1);
}

}  // namespace

int main() {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::puts("skipped: there is no CUDA device");
    return no_device;
  }
  groups const storage;
  std::uint64_t* answers = nullptr;
  check(cudaMallocManaged(&answers, count * sizeof(std::uint64_t)));
  answer_all<<<(count + 255) / 256, 256>>>(storage, answers);
  check(cudaGetLastError());
  check(cudaDeviceSynchronize());

  for (std::uint64_t i = 0; i != count; ++i) {
    if (answers[i] == answer(storage, i)) continue;
    std::fprintf(stderr, "the device differs from the host at %llu\n",
                 static_cast<unsigned long long>(i));
    return 1;
  }
  check(cudaFree(answers));
}
