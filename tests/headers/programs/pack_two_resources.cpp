// SPDX-License-Identifier: Apache-2.0
// One packing of two resources.

#include <omnibal/demand.hpp>
#include <omnibal/pack/best_fit_decreasing.hpp>

#include <cstdint>
#include <vector>

struct sample {
  std::int64_t images;
  std::int64_t tokens;
};

omnibal::packing pack(std::vector<sample> const& samples) {
  return omnibal::best_fit_decreasing(
      samples, omnibal::demand_of(&sample::images, &sample::tokens), omnibal::resources{9, 4096});
}
