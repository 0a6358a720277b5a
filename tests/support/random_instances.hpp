// SPDX-License-Identifier: Apache-2.0
#pragma once

// Samples and capacities on which a bound or a proof goes wrong most easily.

#include "brute_force.hpp"
#include "certificate.hpp"

#include <omnibal/resources.hpp>
#include <omnibal/rng/engine.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace test {

template <class Weight>
using working_of = omnibal::detail::working_weight<Weight>;

/// The largest demand that is tried: that of the type, and where the weights float one whose
/// neighbors are further apart than one.
template <class Weight>
std::int64_t max_of() {
  if constexpr (std::floating_point<Weight>) return std::int64_t{1} << 60;
  return static_cast<std::int64_t>(std::numeric_limits<Weight>::max());
}

/// The neighbor below, not below zero.
template <class T>
T below(T value) {
  if (!(value > T{0})) return T{0};
  if constexpr (std::floating_point<T>) return std::nextafter(value, T{0});
  return value - 1;
}

/// `left + right`, or the largest integer.
template <class T>
T saturated_sum(T left, T right) {
  if constexpr (std::floating_point<T>) {
    return left + right;
  } else {
    T sum{};
    return __builtin_add_overflow(left, right, &sum) ? std::numeric_limits<T>::max() : sum;
  }
}

template <std::size_t R, class Weight>
struct instance {
  using working = working_of<Weight>;

  std::vector<omnibal::resources<R, Weight>> samples;
  std::vector<omnibal::resources<R, working>> demands;
  omnibal::resources<R, working> capacity;
};

/// A capacity of one resource: the demand of some samples or next to it, a half of it, any amount.
template <class T>
T capacity_for(omnibal::rng::engine& random, std::vector<T> const& amounts, T any, T most) {
  T some{};
  T largest{};
  for (T const amount : amounts) {
    if (number_between(random, 0, 1) == 0) some = saturated_sum(some, amount);
    largest = std::max(largest, amount);
  }
  T const one = amounts.empty() ? any : amounts.front();
  T result{};
  switch (number_between(random, 0, 9)) {
    case 0: result = any; break;
    case 1: result = largest; break;
    case 2: result = below(largest); break;
    case 3: result = saturated_sum(one, one); break;
    case 4: result = below(saturated_sum(one, one)); break;
    case 5: result = saturated_sum(largest, one); break;
    case 6: result = below(some); break;
    case 7: result = most; break;
    default: result = some;
  }
  return result > T{0} ? result : T{1};
}

template <std::size_t R, class Weight>
instance<R, Weight> make_instance(omnibal::rng::engine& random, std::int64_t max_samples = 8) {
  using working = working_of<Weight>;
  instance<R, Weight> made;
  auto const count = static_cast<std::size_t>(number_between(random, 0, max_samples));
  made.samples.resize(count);
  made.demands.resize(count);
  for (std::size_t r = 0; r != R; ++r) {
    weight_source<Weight> const weights(random, max_of<Weight>());
    std::vector<working> amounts;
    for (std::size_t i = 0; i != count; ++i) {
      // Equal samples are common in data, and break ties in a search.
      bool const repeats = i != 0 && number_between(random, 0, 3) == 0;
      made.samples[i][r] = repeats ? made.samples[i - 1][r] : weights();
      made.demands[i][r] = static_cast<working>(made.samples[i][r]);
      amounts.push_back(made.demands[i][r]);
    }
    made.capacity[r] = capacity_for(random, amounts, static_cast<working>(weights()),
                                    static_cast<working>(max_of<Weight>()));
  }
  return made;
}

/// The fewest groups whose demands, summed by ascending index, fit the capacity: a packing that
/// there is, whatever rounding makes of other orders.
template <std::size_t R, class T>
std::size_t min_by_index(std::vector<omnibal::resources<R, T>> samples,
                         omnibal::resources<R, T> const& capacity) {
  if constexpr (std::integral<T>) {
    return min_groups(std::move(samples), capacity);
  } else {
    std::erase_if(samples, [&](auto const& sample) { return !sample.fits(capacity); });
    std::vector<omnibal::resources<R, T>> sums(std::size_t{1} << samples.size(),
                                               omnibal::resources<R, T>{});
    std::vector<std::uint8_t> fits(sums.size(), 1);
    for (std::size_t set = 1; set != sums.size(); ++set) {
      auto const last = static_cast<std::size_t>(std::bit_width(set)) - 1;
      sums[set] = sums[set ^ std::size_t{1} << last] + samples[last];
      fits[set] = sums[set].fits(capacity);
    }
    return min_sets(fits);
  }
}

}  // namespace test
