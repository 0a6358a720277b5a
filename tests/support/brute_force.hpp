#pragma once

// The fewest groups by trying all of them.

#include <omnibal/resources.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace test {

/// The fewest groups for the samples that fit `capacity` alone; meant for ten samples or fewer.
/// Floating-point sums may exceed the capacity by their rounding.
template <std::size_t R, class T>
std::size_t fewest_groups(std::vector<omnibal::resources<R, T>> samples,
                          omnibal::resources<R, T> capacity) {
  std::erase_if(samples, [&](auto const& sample) { return !sample.fits(capacity); });
  if constexpr (std::floating_point<T>) {
    for (T& limit : capacity.amounts) limit *= 1 + 64 * std::numeric_limits<T>::epsilon();
  }
  std::size_t const sets = std::size_t{1} << samples.size();
  std::vector<std::uint8_t> fits(sets);
  for (std::size_t set = 0; set != sets; ++set) {
    auto room = capacity;
    bool all = true;
    for (std::size_t i = 0; i != samples.size() && all; ++i) {
      if ((set >> i & 1) == 0) continue;
      all = samples[i].fits(room);
      if (all) room -= samples[i];
    }
    fits[set] = all;
  }
  std::vector<std::size_t> fewest(sets, samples.size());
  fewest[0] = 0;
  for (std::size_t set = 1; set != sets; ++set) {
    std::size_t const first = set & (~set + 1);
    for (std::size_t group = set; group != 0; group = (group - 1) & set) {
      if ((group & first) == 0 || fits[group] == 0) continue;
      fewest[set] = std::min(fewest[set], fewest[set ^ group] + 1);
    }
  }
  return fewest.back();
}

}  // namespace test
