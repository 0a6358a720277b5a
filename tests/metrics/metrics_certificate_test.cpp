// SPDX-License-Identifier: Apache-2.0
// Ratios compared with those of exact sums, up to the largest numbers that can be added.

#include "certificate.hpp"

#include <omnibal/config.hpp>
#include <omnibal/group_loads.hpp>
#include <omnibal/grouping.hpp>
#include <omnibal/metrics.hpp>
#include <omnibal/resources.hpp>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::rng::engine;
using test::number_between;

/// True where a ratio is the exact one but for the rounding of a few operations.
bool is_near(double ratio, long double exact) {
  return std::abs(static_cast<long double>(ratio) - exact) <= 1e-15L * std::max(1.0L, exact);
}
bool is_near_relatively(double ratio, long double exact) {
  return std::abs(static_cast<long double>(ratio) - exact) <= 1e-15L * exact;
}

/// The ratios of some numbers, from sums of 128 bits or of long double.
template <class Sum, class Weight>
struct exact_ratios {
  Sum sum{};
  Sum largest{};
  long double count;

  explicit exact_ratios(std::vector<Weight> const& numbers)
      : count(static_cast<long double>(numbers.size())) {
    for (Weight const number : numbers) {
      sum += static_cast<Sum>(number);
      largest = std::max(largest, static_cast<Sum>(number));
    }
  }

  [[nodiscard]] long double idle() const {
    if (!(largest > 0)) return 0;
    Sum const missing = largest * static_cast<Sum>(count) - sum;
    return static_cast<long double>(missing) / (static_cast<long double>(largest) * count);
  }
  [[nodiscard]] long double imbalance() const {
    return sum > 0 ? static_cast<long double>(largest) * count / static_cast<long double>(sum) : 1;
  }
  [[nodiscard]] long double utilization(long double capacity) const {
    return count == 0 ? 0 : static_cast<long double>(sum) / count / capacity;
  }
};

template <class Weight>
std::string ratio_fault(engine& random) {
  using sum_type = std::conditional_t<std::integral<Weight>, omnibal::detail::int128, long double>;
  auto const count = static_cast<std::size_t>(number_between(random, 0, 8));
  std::int64_t most = std::int64_t{1} << 60;
  if constexpr (std::integral<Weight>) {
    most = static_cast<std::int64_t>(std::numeric_limits<Weight>::max()) /
           (number_between(random, 0, 7) == 0 ? 2 : 8);
  }
  test::weight_source<Weight> const weights(random, most);
  std::vector<Weight> numbers;
  for (std::size_t i = 0; i != count; ++i) numbers.push_back(weights());
  exact_ratios<sum_type, Weight> const exact(numbers);
  Weight const drawn = weights();
  Weight const capacity = drawn > Weight{0} ? drawn : Weight{1};
  bool const is_error = std::integral<Weight> &&
                        exact.sum > static_cast<sum_type>(std::numeric_limits<std::int64_t>::max());
  try {
    double const pad = omnibal::pad_ratio(numbers);
    double const dist = omnibal::dist_ratio(numbers);
    if (is_error) return "a sum above its type is taken";
    // Where integers differ by little against their size, the difference still counts.
    bool const is_exact = std::integral<Weight>;
    auto const agree = [&](double ratio) {
      return is_exact ? is_near_relatively(ratio, exact.idle()) : is_near(ratio, exact.idle());
    };
    if (!agree(pad)) return "pad_ratio is " + std::to_string(pad);
    if (!agree(dist)) return "dist_ratio is " + std::to_string(dist);
    double const imbalance = omnibal::imbalance(numbers);
    if (!is_near_relatively(imbalance, exact.imbalance())) {
      return "imbalance is " + std::to_string(imbalance);
    }
    double const used = omnibal::utilization(numbers, capacity);
    if (!is_near_relatively(used, exact.utilization(static_cast<long double>(capacity)))) {
      return "utilization is " + std::to_string(used);
    }
  } catch (std::overflow_error const&) {
    return is_error ? "" : "a sum that its type can hold is refused";
  }
  return "";
}

/// The loads of groups and their mean pad ratio.
template <class Weight>
std::string group_fault(engine& random) {
  using sum_type = std::conditional_t<std::integral<Weight>, omnibal::detail::int128, long double>;
  auto const count = static_cast<std::size_t>(number_between(random, 0, 8));
  std::int64_t most = std::int64_t{1} << 60;
  if constexpr (std::integral<Weight>) {
    most = static_cast<std::int64_t>(std::numeric_limits<Weight>::max()) / 3;
  }
  test::weight_source<Weight> const weights(random, most);
  std::vector<Weight> numbers;
  for (std::size_t i = 0; i != count; ++i) numbers.push_back(weights());
  omnibal::grouping groups;
  std::vector<std::vector<Weight>> members(1);
  for (std::uint32_t i = 0; i != count; ++i) {
    while (number_between(random, 0, 2) == 0) {
      groups.close();
      members.emplace_back();
    }
    groups.push(i);
    members.back().push_back(numbers[i]);
  }
  groups.close();
  long double pad = 0;
  std::size_t batches = 0;
  bool is_error = false;
  for (auto const& group : members) {
    exact_ratios<sum_type, Weight> const exact(group);
    is_error =
        is_error || (std::integral<Weight> &&
                     exact.sum > static_cast<sum_type>(std::numeric_limits<std::int64_t>::max()));
    pad += exact.idle();
    batches += group.empty() ? std::size_t{0} : 1;
  }
  pad = batches == 0 ? 0 : pad / static_cast<long double>(batches);
  try {
    auto const loads = omnibal::group_loads(groups, numbers, std::identity{});
    double const ratio = omnibal::pad_ratio(groups, numbers);
    if (is_error) return "a load above its type is taken";
    if (!is_near(ratio, pad)) return "pad_ratio is " + std::to_string(ratio);
    for (std::size_t g = 0; g != members.size(); ++g) {
      exact_ratios<sum_type, Weight> const exact(members[g]);
      bool const is_equal = std::integral<Weight>
                                ? static_cast<sum_type>(loads[g][0]) == exact.sum
                                : is_near_relatively(static_cast<double>(loads[g][0]),
                                                     static_cast<long double>(exact.sum));
      if (!is_equal) return "a load is wrong";
    }
  } catch (std::overflow_error const&) {
    return is_error ? "" : "a load that its type can hold is refused";
  }
  return "";
}

}  // namespace

TEMPLATE_TEST_CASE("ratios are those of exact sums", "[certificate]", TEST_CERTIFIED_WEIGHTS) {
  test::certify<TestType>("the ratios of numbers",
                          [](engine& random) { return ratio_fault<TestType>(random); });
  test::certify<TestType>("the ratios and loads of groups",
                          [](engine& random) { return group_fault<TestType>(random); });
}
