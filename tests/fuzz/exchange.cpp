// SPDX-License-Identifier: Apache-2.0
// Plans by which ranks exchange samples, for whatever lengths and places the bytes describe: every
// sample arrives once, the inverse brings it back, and placements move no more than they say.

#include "byte_reader.hpp"
#include "odd_numbers.hpp"
#include "parts.hpp"

#include <omnibal/balance/deal.hpp>
#include <omnibal/balance/lpt.hpp>
#include <omnibal/balance/rebalance.hpp>
#include <omnibal/comm/self_communicator.hpp>
#include <omnibal/config.hpp>
#include <omnibal/exchange/exchange_samples.hpp>
#include <omnibal/exchange/make_plan.hpp>
#include <omnibal/exchange/placement.hpp>
#include <omnibal/exchange/plan_exchange.hpp>
#include <omnibal/grouping.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace {

using omnibal::detail::int128;
using test::byte_reader;
using test::oddity;
using test::read_number;
using test::require;
using test::returns;

/// How ranks are spread over nodes.
struct spread {
  std::size_t ranks_per_node = 1;
  std::vector<std::uint32_t> node_of;

  [[nodiscard]] std::size_t node(std::size_t rank) const {
    return node_of.empty() ? rank / ranks_per_node : node_of[rank];
  }
};

spread read_spread(byte_reader& bytes, std::size_t ranks) {
  spread result;
  std::uint8_t const form = bytes.next();
  result.ranks_per_node = form % 5u + 1;
  if (form < 192) return result;
  for (std::size_t rank = 0; rank != ranks; ++rank) result.node_of.push_back(bytes.next() % 4u);
  result.ranks_per_node = 1;
  return result;
}

/// The bytes that leave their rank and their node where sample i goes from one list to another.
std::pair<int128, int128> moved(std::vector<std::size_t> const& from,
                                std::vector<std::size_t> const& to,
                                std::vector<std::int64_t> const& bytes, spread const& nodes) {
  std::pair<int128, int128> result{0, 0};
  for (std::size_t i = 0; i != from.size(); ++i) {
    if (from[i] != to[i]) result.first += bytes[i];
    if (nodes.node(from[i]) != nodes.node(to[i])) result.second += bytes[i];
  }
  return result;
}

void check_plan(std::string const& name, omnibal::exchange_plan const& plan,
                std::vector<std::uint32_t> const& offsets, std::vector<std::int64_t> const& bytes,
                spread const& nodes) {
  std::size_t const ranks = offsets.size() - 1;
  std::string const fault = test::parts_fault(plan.arrivals(), bytes.size(), ranks);
  require(fault.empty(), name + ": " + fault);
  std::vector<std::size_t> from(bytes.size());
  std::vector<std::size_t> to(bytes.size());
  for (std::uint32_t i = 0; i != bytes.size(); ++i) {
    from[i] = plan.home_of(i);
    to[i] = plan.destination_of(i);
    require(offsets[from[i]] <= i && i < offsets[from[i] + 1], name + " knows where samples lie");
  }
  require(moved(from, to, bytes, nodes) ==
              std::pair<int128, int128>(plan.moved_bytes(), plan.moved_bytes_across_nodes()),
          name + " says what it moves");
  auto const back = plan.inverse();
  require(back.inverse() == plan && back.inverse().digest() == plan.digest(),
          name + " has an inverse");
  require(back.permuted(plan.permuted(bytes)) == bytes, name + " brings samples back");
  for (std::size_t rank = 0; rank != ranks; ++rank) {
    auto const sent = plan.sends(rank);
    auto const counts = plan.send_counts(rank);
    require(sent.item_count() == plan.home_count(rank), name + " sends all that a rank has");
    for (std::size_t other = 0; other != ranks; ++other) {
      require(
          sent[other].size() == counts[other] && plan.receive_counts(other)[rank] == counts[other],
          name + " has counts on which ranks agree");
    }
  }
}

void check_plans(byte_reader& bytes) {
  auto const kind = test::read_oddity(bytes);
  std::size_t const ranks = bytes.next() % 12u + 1;
  spread const nodes = read_spread(bytes, ranks);
  omnibal::make_plan_options options;
  options.ranks_per_node = nodes.ranks_per_node;
  options.max_overload = 0.01 * (bytes.next() % 64);
  if (!nodes.node_of.empty()) options.node_of = nodes.node_of;
  std::vector<std::uint32_t> offsets{0};
  std::uint32_t count = 0;
  for (std::size_t rank = 0; rank != ranks; ++rank) offsets.push_back(count += bytes.next() % 17u);
  std::vector<std::int64_t> costs(count);
  std::vector<std::int64_t> sizes(count);
  for (std::uint32_t i = 0; i != count; ++i) {
    costs[i] = read_number<std::int64_t>(bytes, kind);
    sizes[i] = read_number<std::int64_t>(bytes, kind);
  }
  returns("make_plan", kind, [&] {
    check_plan("make_plan", omnibal::make_plan(offsets, costs, sizes, options), offsets, sizes,
               nodes);
    auto const even = omnibal::make_plan(offsets, costs, sizes, options, omnibal::lpt);
    check_plan("make_plan with lpt", even, offsets, sizes, nodes);
    check_plan("make_plan with deal",
               omnibal::make_plan(offsets, costs, sizes, options, omnibal::deal), offsets, sizes,
               nodes);
    require(test::largest_loads(even.arrivals(), test::cost_vectors<1>(costs.begin(), costs.end()))
                    .amounts[0] ==
                test::largest_loads(omnibal::lpt(costs, ranks),
                                    test::cost_vectors<1>(costs.begin(), costs.end()))
                    .amounts[0],
            "make_plan has the loads of the balancer");
  });
  std::vector<std::uint32_t> local(count);
  std::iota(local.begin(), local.end(), 0u);
  returns("plan_exchange", kind, [&] {
    omnibal::self_communicator alone;
    auto const plan = omnibal::plan_exchange(
        alone, local, [&](std::uint32_t i) { return costs[i]; },
        [&](std::uint32_t i) { return sizes[i]; });
    check_plan("plan_exchange", plan, {0, count}, sizes, {});
    auto const mine = omnibal::exchange_samples(alone, plan, local);
    require(omnibal::exchange_samples(alone, plan.inverse(), mine) == local,
            "exchange_samples brings samples back");
  });
}

/// Offsets that may decrease, and lists of other sizes.
void check_wrong_plans(byte_reader& bytes) {
  std::vector<std::int64_t> offsets(bytes.next() % 6u);
  for (std::int64_t& offset : offsets) offset = bytes.next() % 16 - 1;
  std::vector<std::int64_t> costs(bytes.next() % 16u);
  std::vector<std::int64_t> sizes(bytes.next() % 16u);
  omnibal::make_plan_options options;
  options.ranks_per_node = bytes.next() % 4u;
  options.max_overload = read_number<double>(bytes, oddity::wrong);
  for (std::int64_t& cost : costs) cost = read_number<std::int64_t>(bytes, oddity::wrong);
  for (std::int64_t& size : sizes) size = read_number<std::int64_t>(bytes, oddity::wrong);
  returns("make_plan", oddity::wrong, [&] {
    auto const plan = omnibal::make_plan(offsets, costs, sizes, options);
    std::vector<std::uint32_t> const whole(offsets.begin(), offsets.end());
    check_plan("make_plan", plan, whole, sizes, {options.ranks_per_node, {}});
  });
}

void check_placement(byte_reader& bytes) {
  auto const kind = test::read_oddity(bytes);
  std::size_t const ranks = bytes.next() % 10u + 1;
  spread const nodes = read_spread(bytes, ranks);
  bool const is_lost = kind == oddity::wrong && bytes.next() % 2 == 0;
  std::vector<std::size_t> home_of;
  std::vector<std::size_t> part_of;
  std::vector<std::int64_t> sizes;
  while (!bytes.empty() && sizes.size() < 200) {
    std::uint8_t const place = bytes.next();
    home_of.push_back(place % ranks);
    part_of.push_back(place / 8u % ranks);
    sizes.push_back(read_number<std::int64_t>(bytes, kind));
  }
  auto const groups = [&](std::vector<std::size_t> const& group_of) {
    omnibal::grouping result;
    for (std::size_t g = 0; g != ranks; ++g) {
      for (std::uint32_t i = is_lost ? 1 : 0; i != group_of.size() + (is_lost ? 1 : 0); ++i) {
        if (group_of[i % group_of.size()] == g) result.push(i);
      }
      result.close();
    }
    return result;
  };
  omnibal::placement_options options{.ranks_per_node = nodes.ranks_per_node};
  if (!nodes.node_of.empty()) options.node_of = nodes.node_of;
  bool const is_empty = is_lost && sizes.empty();
  if (is_empty) return;
  returns("placement", kind, [&] {
    auto const made = omnibal::placement(groups(home_of), groups(part_of), sizes, options);
    auto sorted = made.rank_of_part;
    std::sort(sorted.begin(), sorted.end());
    for (std::size_t rank = 0; rank != ranks; ++rank) {
      require(sorted.size() == ranks && sorted[rank] == rank, "placement gives each rank a part");
    }
    std::vector<std::size_t> to;
    for (std::size_t const part : part_of) to.push_back(made.rank_of_part[part]);
    auto const [across_ranks, across_nodes] = moved(home_of, to, sizes, nodes);
    require(across_ranks == made.moved_bytes && across_nodes == made.moved_bytes_across_nodes,
            "placement says what it moves");
    require(made.min_across_nodes <= made.moved_bytes_across_nodes,
            "placement has a bound that is one");
    require(!made.proven || made.min_across_nodes == made.moved_bytes_across_nodes,
            "placement proves what it reaches");
    require(across_nodes <= moved(home_of, part_of, sizes, nodes).second || !made.proven,
            "placement is no worse than the parts as they are");
  });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  byte_reader bytes({data, size});
  switch (bytes.next() % 3) {
    case 0: check_plans(bytes); break;
    case 1: check_wrong_plans(bytes); break;
    default: check_placement(bytes); break;
  }
  return 0;
}
