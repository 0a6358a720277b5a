// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The largest differencing method.

#include <omnibal/balance/detail/part_loads.hpp>
#include <omnibal/balance/detail/part_times.hpp>
#include <omnibal/balance/detail/timed_loads.hpp>
#include <omnibal/balance/karmarkar_karp/differencing.hpp>
#include <omnibal/check.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/config.hpp>
#include <omnibal/detail/integer_costs.hpp>
#include <omnibal/detail/part_speeds.hpp>
#include <omnibal/detail/parts_of_samples.hpp>
#include <omnibal/grouping.hpp>
#include <omnibal/resources.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

namespace omnibal::inline v0 {

namespace detail {

/// Numbers the parts of each speed by their smallest sample index. Empty parts come last.
inline void number_by_least_sample(std::vector<std::uint32_t>& part_of, part_speeds const& speeds) {
  constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();
  std::vector<std::uint32_t> const parts = fastest_first(speeds);
  std::vector<std::uint32_t> first_of(parts.size(), 0);
  for (std::uint32_t k = 1; k < parts.size(); ++k) {
    bool const is_equal = speeds[parts[k]] == speeds[parts[k - 1]];
    first_of[parts[k]] = is_equal ? first_of[parts[k - 1]] : k;
  }
  std::vector<std::uint32_t> count_of(parts.size(), 0);
  std::vector<std::uint32_t> number_of(parts.size(), none);
  for (std::uint32_t& part : part_of) {
    if (number_of[part] == none) {
      std::uint32_t const first = first_of[part];
      number_of[part] = parts[first + count_of[first]++];
    }
    part = number_of[part];
  }
}

/// Calls `body(sample, slot)` for each sample by the largest differencing method. `max_load` is an
/// upper bound on loads. `samples` and `apart` are arguments of `differencing`.
template <class Body>
void run_differencing(integer_costs<1> const& costs, std::span<std::uint32_t const> samples,
                      std::size_t parts, std::size_t apart, std::int64_t max_load,
                      Body const& body) {
  if (load_key<std::uint64_t>::can_hold(max_load, parts)) {
    differencing<std::uint64_t>(costs, samples, parts, apart).run(body);
  } else {
    differencing<uint128>(costs, samples, parts, apart).run(body);
  }
}

/// Calls `body(sample, part)` for each sample if parts have different speeds. Each slower part
/// starts with an extra load: the difference from the load of the fastest part if all times are
/// equal. If the loads with the extra loads are equal, the loads without them are in proportion to
/// the speeds.
template <class Body>
void difference_at_speeds(integer_costs<1> const& costs, std::span<std::uint32_t const> samples,
                          part_speeds const& speeds, Body const& body) {
  std::vector<std::uint32_t> const parts = fastest_first(speeds);
  int128 const total = total_of(costs)[0];
  auto const start_of = [&, sum = speeds.sum()](std::uint32_t part) {
    return static_cast<std::int64_t>(total * (speeds[parts[0]] - speeds[part]) / sum);
  };
  // A start and all costs can exceed the largest integer; halves of them cannot.
  int128 const most = total + start_of(parts.back());
  int const shift = most > std::numeric_limits<std::int64_t>::max() ? 1 : 0;
  integer_costs<1> loads;
  loads.reserve(costs.size() + parts.size());
  for (resources<1> const& cost : costs) loads.push_back({cost[0] >> shift});
  std::vector<std::uint32_t> order(samples.begin(), samples.end());
  std::size_t apart = 0;
  for (; speeds[parts[parts.size() - 1 - apart]] != speeds[parts[0]]; ++apart) {
    order.push_back(static_cast<std::uint32_t>(loads.size()));
    loads.push_back({start_of(parts[parts.size() - 1 - apart]) >> shift});
  }
  std::vector<std::uint32_t> slot_of(loads.size());
  run_differencing(loads, order, parts.size(), apart, static_cast<std::int64_t>(most >> shift),
                   [&](std::uint32_t sample, std::uint32_t slot) { slot_of[sample] = slot; });
  // Slots without a start are the fastest parts.
  std::vector<std::uint32_t> start_in(parts.size(), 0);
  for (std::size_t k = 0; k != apart; ++k) {
    start_in[slot_of[costs.size() + k]] = static_cast<std::uint32_t>(parts.size() - 1 - k);
  }
  std::uint32_t next = 0;
  for (std::uint32_t& start : start_in) start = parts[start == 0 ? next++ : start];
  for (std::uint32_t const sample : samples) body(sample, start_in[slot_of[sample]]);
}

/// Returns the part of each sample by the largest differencing method. Samples with zero cost go to
/// the part with the fewest samples. With different speeds, `lpt` places all samples if its parts
/// are more even.
[[nodiscard]] inline std::vector<std::uint32_t> difference_largest(integer_costs<1> const& costs,
                                                                   part_speeds const& speeds) {
  std::size_t const parts = speeds.size();
  std::vector<std::uint32_t> part_of(costs.size(), 0);
  if (parts == 1) return part_of;
  std::vector<std::uint32_t> const order = largest_first(costs);
  std::size_t const costly = count_costly(costs, std::span(order));
  auto const samples = std::span(order).first(costly);
  count_limits room(parts);
  auto const assign = [&](std::uint32_t sample, std::uint32_t part) {
    part_of[sample] = part;
    room.add(part);
  };
  if (speeds.are_equal()) {
    run_differencing(costs, samples, parts, 0, total_of(costs)[0], assign);
  } else {
    difference_at_speeds(costs, samples, speeds, assign);
  }
  place_zero_cost(std::span(order).subspan(costly), room, part_of);
  if (!speeds.are_equal()) {
    auto placed = place_longest_first(costs, count_limits(parts), speeds);
    auto const time_of = [&](std::vector<std::uint32_t> const& given) {
      return largest_time(costs, std::span(given), speeds);
    };
    if (time_of(placed) < time_of(part_of)) part_of.swap(placed);
  }
  number_by_least_sample(part_of, speeds);
  return part_of;
}

}  // namespace detail

struct karmarkar_karp_options {
  /// The speed of each part, or one value for all; empty for equal speeds. The array must outlive
  /// the option.
  detail::speed_list speeds = {};
};

struct karmarkar_karp_fn {
  /// Balances samples over parts by the largest differencing method. The function keeps tuples of
  /// the loads of all parts, initially one tuple for each sample. It combines the two tuples whose
  /// loads differ most: the largest load of one is added to the smallest load of the other, and so
  /// on. The function stops when one tuple is left. If differences are equal, combined tuples
  /// precede single samples, which are ordered by index. Samples with zero cost go to the part with
  /// the fewest samples.
  ///
  /// The loads are more even than with `lpt` if there are few parts or parts have few samples; the
  /// function cannot limit counts. The parts are numbered by their smallest sample index, empty
  /// parts last. The samples of a part have ascending indices. `cost` is called once for each
  /// sample, in order.
  ///
  /// With `options.speeds`, a first tuple contains an extra load for each slower part: the load
  /// that the part lacks compared with the fastest part if all times are equal. If the loads with
  /// the extra loads are equal, the loads without them are in proportion to the speeds. With few
  /// samples or samples of similar cost, the parts of `lpt` may be more even; the function then
  /// uses these. The parts of equal speed are numbered by their smallest sample index. Speeds are
  /// rounded as in `lpt`.
  ///
  /// Empty parts cost neither time nor memory in a tuple. Complexity: n (log n)^2 for n samples at
  /// most, n log(parts) on most data. Memory: at most 136 bytes per sample and 32 bytes per part;
  /// with different speeds 152 and 180 bytes. The result is included. Determinism: portable for
  /// integers. Errors: the errors of `deal`; with different speeds, `std::length_error` above
  /// 2^32 - 1 samples and parts together. Source: Karmarkar, Karp, "The differencing method of set
  /// partitioning", 1982.
  template <sample_range Samples, class Cost = std::identity>
    requires cost_function<Cost, sample_reference<Samples>>
  [[nodiscard]] grouping operator()(Samples const& samples, std::size_t parts,
                                    Cost const& cost = {},
                                    karmarkar_karp_options const& options = {}) const {
    detail::check_parts(name, parts);
    detail::part_speeds const speeds(name, options.speeds, parts);
    auto const costs = detail::measure_costs(name, samples, cost);
    if (!speeds.are_equal()) {
      detail::check_index_count(name, "samples and parts", costs.size() + parts);
    }
    return detail::collect_parts(detail::difference_largest(costs, speeds), parts);
  }

 private:
  static constexpr std::string_view name = "karmarkar_karp";
};

/// Balances samples over parts by the largest differencing method; see `karmarkar_karp_fn`.
inline constexpr karmarkar_karp_fn karmarkar_karp{};

}  // namespace omnibal::inline v0
