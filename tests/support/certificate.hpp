// SPDX-License-Identifier: Apache-2.0
#pragma once

// Compares what a function proves with brute force on many small random instances.
//
// OMNIBAL_TEST_INSTANCES  how many instances, 100,000 unless it is set
// OMNIBAL_TEST_SEED       the seed of the first one, 1 unless it is set; the others follow it

#include <omnibal/rng/engine.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <catch.hpp>

namespace test {

inline std::uint64_t number_from_environment(char const* name, std::uint64_t otherwise) {
  char const* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

template <class T>
constexpr std::string_view weight_name() {
  if constexpr (std::same_as<T, std::int32_t>) return "int32";
  if constexpr (std::same_as<T, std::int64_t>) return "int64";
  if constexpr (std::same_as<T, std::uint32_t>) return "uint32";
  if constexpr (std::same_as<T, float>) return "float";
  if constexpr (std::same_as<T, double>) return "double";
}

/// Calls `fault(random)` for every instance, each with an engine of its own seed; it makes an
/// instance, solves it both ways and returns what is wrong, empty where nothing is. The first fault
/// ends the test and names its seed. Prints how many instances there were.
template <class Weight, class Fault>
void certify(std::string_view function, Fault const& fault) {
  std::uint64_t const count = number_from_environment("OMNIBAL_TEST_INSTANCES", 100'000);
  std::uint64_t const first = number_from_environment("OMNIBAL_TEST_SEED", 1);
  for (std::uint64_t i = 0; i != count; ++i) {
    omnibal::rng::engine random(first + i);
    std::string const found = fault(random);
    if (!found.empty()) {
      FAIL(function << " of " << weight_name<Weight>() << ", OMNIBAL_TEST_SEED=" << first + i
                    << ": " << found);
    }
  }
  SUCCEED();
  std::printf("%s of %s: %llu instances agree with brute force\n", std::string(function).c_str(),
              std::string(weight_name<Weight>()).c_str(), static_cast<unsigned long long>(count));
}

/// A whole number from `least` to `most`.
inline std::int64_t number_between(omnibal::rng::engine& random, std::int64_t least,
                                   std::int64_t most) {
  auto const count =
      static_cast<std::uint64_t>(most) - static_cast<std::uint64_t>(least) + std::uint64_t{1};
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(least) +
                                   omnibal::rng::below(random, count));
}

/// Draws weights of one instance, all of one kind that is drawn first: few values (ties and zeros),
/// small, larger, up to `most`, near `most`, powers of two and their neighbors, one giant among
/// small ones; where the weights float, fractions too.
template <class Weight>
class weight_source {
 public:
  /// No weight is above `most`, so that the caller decides whether sums can overflow.
  weight_source(omnibal::rng::engine& random, std::int64_t most)
      : random_(&random),
        most_(most),
        kind_(omnibal::rng::below(random, std::floating_point<Weight> ? 9 : 7)) {}

  [[nodiscard]] Weight operator()() const {
    auto const up_to = [&](std::int64_t limit) {
      return number_between(*random_, 0, std::min(limit, most_));
    };
    switch (kind_) {
      case 0: return static_cast<Weight>(up_to(3));
      case 1: return static_cast<Weight>(up_to(20));
      case 2: return static_cast<Weight>(up_to(1000));
      case 3: return static_cast<Weight>(up_to(most_));
      case 4: return static_cast<Weight>(most_ - up_to(5));
      case 5: return static_cast<Weight>(power_of_two());
      case 6: return static_cast<Weight>(up_to(7) == 0 ? most_ : up_to(9));
      default: return static_cast<Weight>(fraction());
    }
  }

 private:
  [[nodiscard]] std::int64_t power_of_two() const {
    std::int64_t power = 1;
    for (auto left = number_between(*random_, 0, 61); left != 0 && power <= most_ / 2; --left) {
      power *= 2;
    }
    return std::clamp<std::int64_t>(power + number_between(*random_, -1, 1), 0, most_);
  }

  [[nodiscard]] double fraction() const {
    double const share = static_cast<double>(number_between(*random_, 0, 1 << 30)) / (1 << 30);
    return kind_ == 7 ? share : share * static_cast<double>(most_);
  }

  omnibal::rng::engine* random_;
  std::int64_t most_;
  std::uint64_t kind_;
};

}  // namespace test

/// The weight types that a certificate is tried for.
#define TEST_CERTIFIED_WEIGHTS std::int32_t, std::int64_t, std::uint32_t, float, double
