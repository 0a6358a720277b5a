// SPDX-License-Identifier: Apache-2.0
#include "error_text.hpp"
#include "parts.hpp"
#include "samples.hpp"

#include <omnibal/balance/balance_set_cost.hpp>
#include <omnibal/balance/lpt.hpp>
#include <omnibal/balance/set_costs.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::balance_set_cost;
using omnibal::grouping;
using omnibal::padded_attention;
using omnibal::padded_batch;
using omnibal::unmasked_pack;

using lengths_type = std::vector<std::int64_t>;

/// The largest value of the parts.
template <class Set, class Samples>
auto largest_value(omnibal::groups_argument parts, Samples const& samples, Set const& empty) {
  std::remove_cvref_t<decltype(empty.value())> largest{};
  for (std::size_t p = 0; p != parts.size(); ++p) {
    Set set = empty;
    for (std::uint32_t const item : parts[p]) set.add(samples[item]);
    largest = std::max(largest, set.value());
  }
  return largest;
}

/// The least largest value over all ways to split the samples into at most so many sets.
template <class Set, class Samples>
class all_partitions {
 public:
  using value_type = std::remove_cvref_t<decltype(std::declval<Set const&>().value())>;

  all_partitions(Samples const& samples, std::size_t parts, Set const& empty)
      : samples_(samples), parts_(parts), empty_(empty) {}

  value_type least() {
    try_all(0, {});
    return least_;
  }

 private:
  void try_all(std::size_t sample, std::vector<Set> const& sets) {
    if (sample == samples_.size()) {
      value_type largest{};
      for (Set const& set : sets) largest = std::max(largest, set.value());
      least_ = std::min(least_, largest);
      return;
    }
    for (std::size_t s = 0; s != std::min(parts_, sets.size() + 1); ++s) {
      std::vector<Set> more = sets;
      if (s == more.size()) more.push_back(empty_);
      more[s].add(samples_[sample]);
      try_all(sample + 1, more);
    }
  }

  Samples const& samples_;
  std::size_t parts_;
  Set const& empty_;
  value_type least_ = std::numeric_limits<value_type>::max();
};

std::vector<lengths_type> length_sets(std::size_t count) {
  std::vector<lengths_type> sets;
  for (auto const& set : test::small_sets<1>(count, count)) {
    lengths_type lengths;
    for (auto const& sample : set.samples) lengths.push_back(sample[0]);
    sets.push_back(lengths);
  }
  return sets;
}

/// The parts are sound, are runs of the order, and the same when they are made again.
template <class Set>
grouping checked(lengths_type const& lengths, std::size_t parts, Set const& empty) {
  grouping result = balance_set_cost(lengths, parts, empty);
  INFO(lengths.size() << " samples, " << parts << " parts");
  CHECK(test::parts_fault(result, lengths.size(), parts) == "");
  CHECK(balance_set_cost(lengths, parts, empty) == result);
  auto const precedes = [&](std::uint32_t a, std::uint32_t b) {
    return lengths[a] > lengths[b] || (lengths[a] == lengths[b] && a < b);
  };
  CHECK(std::is_sorted(result.items().begin(), result.items().end(), precedes));
  for (std::size_t p = 0; p != parts; ++p) CHECK(result[p].empty() == (p >= lengths.size()));
  return result;
}

/// A batch that costs more per sample the longer it is, in a type of its own.
struct floating_batch {
  double longest = 0;
  double count = 0;
  void add(std::int64_t length) {
    longest = std::max(longest, static_cast<double>(length));
    ++count;
  }
  [[nodiscard]] double value() const { return longest * (count + 0.5); }
};

/// An accumulator that gives one value, whatever is added.
struct constant_value {
  double returned;
  void add(std::int64_t) {}
  [[nodiscard]] double value() const { return returned; }
};

}  // namespace

TEST_CASE("balance_set_cost finds the best of all parts where count and longest make the cost") {
  for (std::size_t const count : {1u, 2u, 5u, 8u}) {
    for (auto const& lengths : length_sets(count)) {
      for (std::size_t const parts : {1u, 2u, 3u, 4u, 9u}) {
        auto const check = [&](auto const& empty) {
          auto const result = checked(lengths, parts, empty);
          if (lengths.empty()) return;
          all_partitions oracle(lengths, parts, empty);
          CHECK(largest_value(result, lengths, empty) == oracle.least());
        };
        check(padded_batch{});
        check(padded_attention{});
        check(floating_batch{});
      }
    }
  }
}

TEST_CASE("balance_set_cost is within 2 - 1/k of the best sum where the sum makes the cost") {
  omnibal::unmasked_pack const empty(std::identity{}, {.linear = 0, .quadratic = 1});
  for (std::size_t const count : {2u, 5u, 8u}) {
    for (auto const& lengths : length_sets(count)) {
      for (std::size_t const parts : {1u, 2u, 3u, 4u}) {
        auto const result = checked(lengths, parts, empty);
        if (lengths.empty()) continue;
        all_partitions oracle(lengths, parts, empty);
        auto const square_of_best = static_cast<double>(oracle.least());
        double const ratio = 2 - 1 / static_cast<double>(parts);
        CHECK(largest_value(result, lengths, empty) <=
              static_cast<std::int64_t>(square_of_best * ratio * ratio * (1 + 1e-12)));
      }
    }
  }
}

TEST_CASE("balance_set_cost finds the best consecutive runs of many samples") {
  for (auto const& lengths : length_sets(300)) {
    for (std::size_t const parts : {1u, 7u, 64u, 299u, 400u}) {
      padded_batch const empty;
      auto const result = checked(lengths, parts, empty);
      if (lengths.empty()) continue;
      // One less would need more parts: runs are filled in the same order up to that bound.
      auto const bound = largest_value(result, lengths, empty) - 1;
      std::size_t needed = 1;
      std::int64_t run = 0;
      std::int64_t longest = 0;
      for (std::uint32_t const item : result.items()) {
        longest = std::max(longest, lengths[item]);
        if (longest * ++run <= bound) continue;
        ++needed;
        run = 1;
        longest = lengths[item];
        if (longest > bound) needed = parts + 1;
      }
      CHECK((bound < 0 || needed > parts));
    }
  }
}

TEST_CASE("balance_set_cost makes padded batches that lpt cannot") {
  test::random_amounts random(3);
  lengths_type lengths(2000);
  for (auto& length : lengths) length = 16 + random.heavy_tail(16384);
  padded_batch const empty;
  auto const ours = largest_value(balance_set_cost(lengths, 16, empty), lengths, empty);
  auto const theirs = largest_value(omnibal::lpt(lengths, 16), lengths, empty);
  CHECK(ours * 4 < theirs);
}

TEST_CASE("balance_set_cost cuts samples as they are given where that is wanted") {
  lengths_type const lengths{1, 9, 1, 1, 9, 9};
  auto const result =
      balance_set_cost(lengths, 3, padded_batch{}, {.order = omnibal::run_order::given});
  CHECK(result == grouping({0, 2, 4, 6}, {0, 1, 2, 3, 4, 5}));
  CHECK(balance_set_cost(lengths, 3, padded_batch{}) == grouping({0, 2, 4, 6}, {1, 4, 5, 0, 2, 3}));
}

TEST_CASE("set costs take member pointers, lambdas with captures and floating-point lengths") {
  struct sample {
    std::int64_t tokens;
    double seconds;
  };
  std::vector<sample> const samples{{3, 0.5}, {4, 0.25}, {1, 1.0}};
  auto const by_member = balance_set_cost(samples, 2, padded_batch{&sample::tokens});
  int calls = 0;
  auto const tokens = [&calls](sample const& s) {
    ++calls;
    return s.tokens;
  };
  CHECK(balance_set_cost(samples, 2, padded_batch{tokens}) == by_member);
  CHECK(calls > 3);
  using in_seconds = padded_attention<double sample::*, double>;
  CHECK(balance_set_cost(samples, 3, in_seconds{&sample::seconds}) ==
        grouping({0, 1, 2, 3}, {2, 0, 1}));
  static_assert(omnibal::set_cost<in_seconds, sample const&>);
  static_assert(!omnibal::set_cost<padded_batch<double sample::*>, sample const&>);
}

TEST_CASE("set costs are what their names say") {
  auto const value_of = [](auto set) {
    for (std::int64_t const length : {3, 5, 2}) set.add(length);
    return set.value();
  };
  CHECK(value_of(padded_batch{}) == 15);
  CHECK(value_of(padded_attention{}) == 75);
  CHECK(value_of(unmasked_pack{}) == 100);
  CHECK(value_of(unmasked_pack{std::identity{}, {.linear = 7, .quadratic = 2}}) == 270);
  CHECK(padded_batch{}.value() == 0);
}

TEST_CASE("balance_set_cost takes fewer samples than parts, none and zeros") {
  CHECK(balance_set_cost(lengths_type{}, 2, padded_batch{}) == grouping({0, 0, 0}, {}));
  CHECK(balance_set_cost(lengths_type{1, 2}, 3, padded_batch{}) == grouping({0, 1, 2, 2}, {1, 0}));
  CHECK(balance_set_cost(lengths_type{0, 0, 0, 0}, 2, padded_batch{}).size() == 2);
}

TEST_CASE("balance_set_cost names what is wrong") {
  using test::error_text;
  lengths_type const lengths{1, 2, -4};
  auto const has = [](std::string const& text, std::string const& part) {
    INFO(text);
    return text.find(part) != std::string::npos;
  };
  auto const no_parts = error_text<std::invalid_argument>(
      [&] { return balance_set_cost(lengths, 0, padded_batch{}); });
  CHECK(has(no_parts, "omnibal::balance_set_cost: parts is 0"));
  auto const too_many = error_text<std::length_error>(
      [&] { return balance_set_cost(lengths, std::size_t{1} << 32, padded_batch{}); });
  CHECK(has(too_many, "4294967296"));
  auto const negative = error_text<std::invalid_argument>(
      [&] { return balance_set_cost(lengths, 2, padded_batch{}); });
  CHECK(has(negative, "omnibal::padded_batch: the length of a sample is -4"));
  for (double const value :
       {-1.0, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    auto const bad = error_text<std::invalid_argument>(
        [&] { return balance_set_cost(lengths, 2, constant_value{value}); });
    CHECK(has(bad, "set_cost[0] is "));
  }
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  auto const overflow = [&](auto const& empty) {
    return error_text<std::overflow_error>([&] {
      return balance_set_cost(lengths_type{most, most}, 1, empty);
    });
  };
  CHECK(has(overflow(padded_batch{}), "padded_batch: the value"));
  CHECK(has(overflow(padded_attention{}), "padded_attention: the value"));
  CHECK(has(overflow(unmasked_pack{}), "unmasked_pack: the value"));
  CHECK(has(overflow(unmasked_pack{std::identity{}, {.linear = 0, .quadratic = 0}}),
            "unmasked_pack: the value"));
  auto const bad_weight = error_text<std::invalid_argument>([] {
    return unmasked_pack{std::identity{}, {.linear = 1, .quadratic = -2}};
  });
  CHECK(has(bad_weight, "weights[1] is -2"));
}

static_assert(
    std::invocable<omnibal::balance_set_cost_fn, lengths_type, std::size_t, padded_batch<>>);
static_assert(!std::invocable<omnibal::balance_set_cost_fn, std::vector<std::string>, std::size_t,
                              padded_batch<>>);
static_assert(
    !std::invocable<omnibal::balance_set_cost_fn, lengths_type, std::size_t, std::identity>);
