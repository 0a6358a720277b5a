// SPDX-License-Identifier: Apache-2.0
// Stages of whatever chains the bytes describe, under whatever constraints: two algorithms for one
// question agree, and what is proven is so.

#include "../partition/all_cuts.hpp"
#include "byte_reader.hpp"
#include "odd_numbers.hpp"

#include <omnibal/config.hpp>
#include <omnibal/partition/partition_layers.hpp>
#include <omnibal/partition/partition_minimax.hpp>
#include <omnibal/partition/partition_throughput.hpp>
#include <omnibal/solve_status.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <vector>

namespace {

using omnibal::solve_status;
using test::byte_reader;
using test::oddity;
using test::read_number;
using test::require;
using test::returns;

/// Boundaries from zero to all layers that never fall.
void check_boundaries(std::string const& name, std::span<std::uint32_t const> boundaries,
                      std::size_t layers, std::size_t stages, omnibal::empty_stages empty) {
  require(boundaries.size() == stages + 1, name + " has so many stages");
  require(boundaries.front() == 0 && boundaries.back() == layers, name + " has all layers");
  for (std::size_t s = 0; s != stages; ++s) {
    std::uint32_t const least = boundaries[s] + (empty == omnibal::empty_stages::allowed ? 0 : 1);
    require(boundaries[s + 1] >= least, name + " has its stages in order");
  }
}

template <class T>
void check_partition_minimax(byte_reader& bytes) {
  auto const kind = test::read_oddity(bytes);
  std::size_t const stages = bytes.next() % 24u + (kind == oddity::wrong ? 0 : 1);
  auto const empty = omnibal::empty_stages{bytes.next() % 2};
  auto const costs = test::read_numbers<T>(bytes, kind, 200);
  bool const is_short = costs.size() < stages && empty == omnibal::empty_stages::forbidden;
  returns("partition_minimax", is_short ? oddity::wrong : kind, [&] {
    auto const made = omnibal::partition_minimax(costs, stages, std::identity{}, {.empty = empty});
    check_boundaries("partition_minimax", made.boundaries, costs.size(), stages, empty);
    require(made.proven && made.lower_bound == made.bottleneck, "partition_minimax is exact");
    if constexpr (std::integral<T>) {
      T largest = 0;
      for (std::size_t s = 0; s != stages; ++s) {
        T sum = 0;
        for (auto l = made.boundaries[s]; l != made.boundaries[s + 1]; ++l) sum += costs[l];
        largest = std::max(largest, sum);
      }
      require(largest == made.bottleneck, "partition_minimax adds up");
      std::vector<T> sums{0};
      for (T const cost : costs) sums.push_back(sums.back() + cost);
      auto const stage = [&](std::size_t, std::size_t first, std::size_t last) {
        return sums[last] - sums[first];
      };
      // The largest value of the type means that a stage cannot run.
      if (sums.back() == std::numeric_limits<T>::max()) return;
      auto const other = omnibal::partition_layers(costs, stages, stage, omnibal::fits_always{},
                                                   {.constraints = {.empty = empty}});
      require(other.status == solve_status::solved && other.bottleneck == made.bottleneck,
              "partition_layers finds the bottleneck of partition_minimax");
    }
  });
}

omnibal::partition_constraints read_constraints(byte_reader& bytes, oddity kind, std::size_t layers,
                                                std::size_t stages) {
  omnibal::partition_constraints result;
  std::uint8_t const listed = bytes.next();
  result.empty = omnibal::empty_stages{listed & 1};
  auto const layer = [&] { return static_cast<std::uint32_t>(bytes.next() % (layers + 1)); };
  auto const list = [&](std::size_t count) {
    std::vector<std::int64_t> values(count);
    for (std::int64_t& value : values) value = read_number<std::int64_t>(bytes, kind);
    return values;
  };
  if ((listed & 2) != 0) {
    result.bytes = list(layers);
    result.capacity = list(bytes.next() % 2 == 0 ? 1 : stages);
  }
  if ((listed & 4) != 0) result.min_layers = std::int64_t{bytes.next() % 4};
  if ((listed & 8) != 0) result.max_layers = std::int64_t{bytes.next() % 16};
  if ((listed & 16) != 0) {
    result.pinned.push_back({layer(), static_cast<std::uint32_t>(bytes.next() % (stages + 1))});
  }
  if ((listed & 32) != 0) result.forbidden_cuts.push_back(layer());
  if ((listed & 64) != 0) result.tied.push_back({layer(), layer()});
  if ((listed & 128) != 0) result.devices = bytes.next() % 5u;
  return result;
}

/// Few layers, so that all cuts can be tried.
void check_constrained(byte_reader& bytes) {
  auto const kind = test::read_oddity(bytes);
  std::size_t const stages = bytes.next() % 5u + 1;
  std::size_t const layers = bytes.next() % 11u;
  auto const constraints = read_constraints(bytes, kind, layers, stages);
  std::size_t const micro_batches = bytes.next() % 9u + 1;
  std::size_t const labels = bytes.next() % 8u == 0 ? 2 : 100'000;
  std::uint8_t const barred = bytes.next();
  std::vector<std::int64_t> costs(layers);
  for (std::int64_t& cost : costs) cost = read_number<std::int64_t>(bytes, kind);
  std::int64_t const at_cut = bytes.next();
  auto const is_wrong = [](std::int64_t cost) { return cost < 0; };
  bool const has_wrong = std::any_of(costs.begin(), costs.end(), is_wrong);
  omnibal::detail::int128 whole = at_cut;
  for (std::int64_t const cost : costs) whole += cost;
  // The sums are computed here, not by the library.
  if (has_wrong || whole >= std::numeric_limits<std::int64_t>::max() / 16) return;
  auto const cost = [&](std::size_t stage, std::size_t first, std::size_t last) {
    std::int64_t sum = first == 0 ? 0 : at_cut;
    for (std::size_t l = first; l != last; ++l) sum += costs[l];
    return sum + static_cast<std::int64_t>(stage) % 2;
  };
  auto const fits = [&](std::size_t stage, std::size_t first, std::size_t last) {
    return barred < 128 || (stage * 7 + first * 5 + last * 3 + barred) % 4 != 0;
  };
  std::vector<std::int64_t> base(costs);
  auto const check = [&](std::string const& name, auto const& with_base, auto const& without) {
    require(with_base.status == without.status && with_base.objective == without.objective,
            name + " gives the same with a base");
    if (with_base.status != solve_status::solved) {
      require(with_base.boundaries.empty(), name + " has no stages that do not fit");
      return;
    }
    check_boundaries(name, with_base.boundaries, layers, stages, constraints.empty);
    require(with_base.lower_bound <= with_base.objective, name + " has a bound that is one");
    require(!with_base.proven || with_base.lower_bound == with_base.objective,
            name + " proves what it reaches");
    for (std::size_t s = 0; s != stages; ++s) {
      auto const first = with_base.boundaries[s];
      auto const last = with_base.boundaries[s + 1];
      if (first == last) continue;
      require(fits(s, first, last), name + " has stages that fit");
      require(cost(s, first, last) <= with_base.bottleneck, name + " has a largest stage");
    }
  };
  // Which constraints contradict each other is not told here.
  returns("partition_layers", oddity::wrong, [&] {
    auto const with_base = omnibal::partition_layers(
        layers, stages, cost, fits, {.base = base, .constraints = constraints, .labels = labels});
    check("partition_layers", with_base,
          omnibal::partition_layers(layers, stages, cost, fits,
                                    {.constraints = constraints, .labels = labels}));
    if (!with_base.proven || constraints.devices != 0 || !constraints.bytes.empty() ||
        !constraints.min_layers.empty() || !constraints.max_layers.empty() ||
        !constraints.pinned.empty() || !constraints.forbidden_cuts.empty() ||
        !constraints.tied.empty()) {
      return;
    }
    std::int64_t least = std::numeric_limits<std::int64_t>::max();
    test::for_all_cuts(layers, stages, constraints.empty, [&](test::cuts const& cuts) {
      std::int64_t largest = 0;
      for (std::size_t s = 0; s != stages; ++s) {
        if (cuts[s] == cuts[s + 1]) continue;
        if (!fits(s, cuts[s], cuts[s + 1])) return;
        largest = std::max(largest, cost(s, cuts[s], cuts[s + 1]));
      }
      least = std::min(least, largest);
    });
    bool const is_solved = with_base.status == solve_status::solved;
    require(is_solved == (least != std::numeric_limits<std::int64_t>::max()) &&
                (!is_solved || with_base.bottleneck == least),
            "partition_layers finds the best of all cuts");
  });
  returns("partition_throughput", oddity::wrong, [&] {
    auto const with_base = omnibal::partition_throughput(layers, stages, cost, fits,
                                                         {.micro_batches = micro_batches,
                                                          .base = base,
                                                          .constraints = constraints,
                                                          .labels = labels});
    check("partition_throughput", with_base,
          omnibal::partition_throughput(
              layers, stages, cost, fits,
              {.micro_batches = micro_batches, .constraints = constraints, .labels = labels}));
  });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  byte_reader bytes({data, size});
  switch (bytes.next() % 3) {
    case 0: check_partition_minimax<std::int64_t>(bytes); break;
    case 1: check_partition_minimax<double>(bytes); break;
    default: check_constrained(bytes); break;
  }
  return 0;
}
