// SPDX-License-Identifier: Apache-2.0
// What the packers promise and prove, compared with the fewest groups by brute force.

#include "brute_force.hpp"
#include "certificate.hpp"
#include "packing_faults.hpp"
#include "random_instances.hpp"

#include <omnibal/pack/best_fit_decreasing.hpp>
#include <omnibal/pack/best_packing.hpp>
#include <omnibal/pack/capacity_warnings.hpp>
#include <omnibal/pack/improve_packing.hpp>
#include <omnibal/pack/isf.hpp>
#include <omnibal/pack/next_fit.hpp>
#include <omnibal/pack/online_packer.hpp>
#include <omnibal/pack/packing_bound.hpp>
#include <omnibal/pack/split_long.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::resources;
using omnibal::rng::engine;
using test::instance;
using test::make_instance;
using test::number_between;
using test::working_of;

/// What is wrong with the result of a packer.
template <std::size_t R, class Weight>
std::string packer_fault(std::string const& name, omnibal::packing const& result,
                         instance<R, Weight> const& given, std::size_t fewest) {
  if (std::string const found = test::fault(result, given.demands, given.capacity);
      !found.empty()) {
    return name + ": " + found;
  }
  if (result.report.lower_bound <= fewest) return "";
  return name + " claims a bound of " + std::to_string(result.report.lower_bound) + ", there are " +
         std::to_string(fewest) + " groups";
}

/// Pushes all samples and empties the packer.
template <std::size_t R, class Weight>
std::string online_fault(instance<R, Weight> const& given,
                         omnibal::online_packer_options const& options) {
  using working = working_of<Weight>;
  omnibal::online_packer<R, working> packer(given.capacity, options);
  omnibal::packing all;
  std::string found;
  auto const take = [&](auto const& group) {
    if (!group) return;
    resources<R, working> load{};
    for (std::uint64_t const id : group.ids) {
      all.groups.push(static_cast<std::uint32_t>(id));
      load += given.demands[id];
    }
    all.groups.close();
    if (!group.load.fits(given.capacity)) found = "online_packer: a load exceeds the capacity";
    if (std::integral<working> && !(group.load == load)) found = "online_packer: a load is wrong";
  };
  for (std::uint32_t i = 0; i != given.samples.size(); ++i) {
    auto const group = packer.push(i, given.samples[i]);
    if (group.oversized) all.oversized.push_back(i);
    take(group);
  }
  while (auto const group = packer.flush()) take(group);
  if (!found.empty()) return found;
  all.report = {.lower_bound = all.groups.empty() ? std::size_t{0} : 1,
                .rounds = 1,
                .item_rounds = all.groups.item_count(),
                .below_keep = 0};
  std::string const fault = test::fault(all, given.demands, given.capacity);
  return fault.empty() ? "" : "online_packer: " + fault;
}

template <std::size_t R, class Weight>
std::string packing_fault(engine& random) {
  auto const given = make_instance<R, Weight>(random);
  std::identity const demand;
  std::size_t const fewest = test::min_by_index(given.demands, given.capacity);
  std::size_t const bound =
      std::max(omnibal::packing_bound(given.samples, demand, given.capacity,
                                      {.effort = omnibal::effort::thorough}),
               omnibal::packing_bound(given.samples, demand, given.capacity,
                                      {.pattern_steps = std::size_t{1} << 16}));
  if (bound > fewest) {
    return "lower_bound is " + std::to_string(bound) + ", there are " + std::to_string(fewest) +
           " groups";
  }
  auto const uniform = [&](std::int64_t least, std::int64_t most) {
    return static_cast<std::uint64_t>(number_between(random, least, most));
  };
  auto const next_fit = omnibal::next_fit(given.samples, demand, given.capacity);
  std::string found = packer_fault("next_fit", next_fit, given, fewest);
  if (found.empty()) {
    omnibal::isf_options const options{.rounds = uniform(1, 4)};
    auto const result = omnibal::isf(given.samples, demand, given.capacity, options);
    found = packer_fault("isf", result, given, fewest);
  }
  if (found.empty()) {
    auto const measure = uniform(0, 1) == 0 ? omnibal::size_measure::sum_of_shares
                                            : omnibal::size_measure::largest_share;
    auto const one = omnibal::best_fit_decreasing(given.samples, demand, given.capacity,
                                                  omnibal::best_fit_decreasing_options{measure});
    found = packer_fault("best_fit_decreasing", one, given, fewest);
    if (!found.empty()) return found;
    auto const best = omnibal::best_packing(given.samples, demand, given.capacity,
                                            {.measure = measure, .orders = uniform(1, 4)});
    found = packer_fault("best_packing", best, given, fewest);
    if (found.empty() && best.groups.size() > one.groups.size()) {
      found = "best_packing has more groups than its first order";
    }
  }
  if (found.empty()) {
    omnibal::improve_packing_options const options{
        .passes = uniform(0, 6),
        .even_passes = uniform(0, 3),
        .spare_groups = 0.5 * static_cast<double>(uniform(0, 2)),
        .seed = uniform(0, 9)};
    auto const result =
        omnibal::improve_packing(given.samples, demand, given.capacity, next_fit, options);
    found = packer_fault("improve_packing", result, given, fewest);
    auto const most = static_cast<double>(next_fit.groups.size()) * (1 + options.spare_groups);
    if (found.empty() && static_cast<double>(result.groups.size()) > most) {
      found = "improve_packing makes more groups";
    }
  }
  if (found.empty()) {
    found = online_fault(
        given,
        {.buffer = uniform(1, 9), .longest_wait = uniform(1, 9), .candidates = uniform(1, 3)});
  }
  return found;
}

/// What is wrong with the pieces and the bound of `split_long`.
template <class Weight>
std::string split_fault(engine& random) {
  auto const given = make_instance<1, Weight>(random);
  std::int64_t const capacity = given.capacity[0];
  std::vector<std::int64_t> lengths;
  for (auto const& sample : given.demands) {
    if (sample[0] / capacity <= 2) lengths.push_back(sample[0]);
  }
  omnibal::split_long_options options;
  options.policy = number_between(random, 0, 1) == 0 ? omnibal::long_samples::own_group
                                                     : omnibal::long_samples::split;
  options.sizes =
      number_between(random, 0, 1) == 0 ? omnibal::piece_sizes::even : omnibal::piece_sizes::full;
  options.multiple = number_between(random, 0, 1) == 0
                         ? 1
                         : number_between(random, 1, std::min<std::int64_t>(capacity, 4));
  auto const result = omnibal::split_long(lengths, std::identity{}, capacity, options);
  std::vector<resources<1>> pieces;
  std::vector<std::int64_t> covered(lengths.size(), 0);
  std::size_t own = 0;
  for (auto const& piece : result.pieces) {
    if (piece.first != covered[piece.sample] || piece.length < 0) return "a piece is misplaced";
    covered[piece.sample] += piece.length;
    if (piece.length > capacity) {
      ++own;
    } else {
      pieces.push_back({piece.length});
    }
  }
  if (covered != lengths) return "the pieces are not the samples";
  if (pieces.size() > 12) return "";
  std::size_t const fewest = own + test::min_groups(pieces, resources<1>{capacity});
  if (result.report.lower_bound > fewest) {
    return "the bound is " + std::to_string(result.report.lower_bound) + ", there are " +
           std::to_string(fewest) + " groups";
  }
  return "";
}

}  // namespace

TEMPLATE_TEST_CASE("no packer exceeds a capacity or claims a bound that is none", "[certificate]",
                   TEST_CERTIFIED_WEIGHTS) {
  test::certify<TestType>("the packers", [](engine& random) -> std::string {
    // The types of several resources are those of one, once they are converted.
    if constexpr (sizeof(TestType) == 8) {
      auto const kinds = number_between(random, 0, 3);
      if (kinds == 2) return packing_fault<2, TestType>(random);
      if (kinds == 3) return packing_fault<3, TestType>(random);
    }
    return packing_fault<1, TestType>(random);
  });
}

TEMPLATE_TEST_CASE("split_long has the pieces of all samples and claims no bound that is none",
                   "[certificate]", std::int32_t, std::int64_t, std::uint32_t) {
  test::certify<TestType>("split_long",
                          [](engine& random) { return split_fault<TestType>(random); });
}

TEMPLATE_TEST_CASE("capacity_warnings warns where two of the commonest demand do not fit",
                   "[certificate]", TEST_CERTIFIED_WEIGHTS) {
  using working = working_of<TestType>;
  test::certify<TestType>("capacity_warnings", [](engine& random) -> std::string {
    auto const given = make_instance<1, TestType>(random);
    working const capacity = given.capacity[0];
    // The commonest demand above zero, of equally common ones the largest.
    working commonest{};
    std::ptrdiff_t most = 0;
    for (auto const& sample : given.demands) {
      auto const same = std::count(given.demands.begin(), given.demands.end(), sample);
      if (!(sample[0] > 0) || same < most || (same == most && sample[0] < commonest)) continue;
      commonest = sample[0];
      most = same;
    }
    auto const found =
        omnibal::capacity_warnings(given.samples, std::identity{}, given.capacity, 0.25);
    bool const is_common = most != 0 && 4 * most >= std::ssize(given.demands);
    bool const is_hopeless = is_common && !(commonest <= capacity - commonest);
    if (found.size() != (is_hopeless ? 1u : 0u)) return "a warning is missing or wrong";
    if (found.empty()) return "";
    if (found[0].commonest != commonest || found[0].samples != static_cast<std::size_t>(most)) {
      return "another demand is the commonest";
    }
    bool const holds_two = commonest <= found[0].enough - commonest;
    if (!holds_two && found[0].enough != std::numeric_limits<working>::max()) {
      return "the capacity that is named does not hold two";
    }
    return "";
  });
}
