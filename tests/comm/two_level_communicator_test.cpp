// SPDX-License-Identifier: Apache-2.0
#include "error_text.hpp"
#include "kept_ranks.hpp"
#include "rank_checks.hpp"
#include "samples.hpp"
#include "watchdog.hpp"

#include <omnibal/comm/collectives.hpp>
#include <omnibal/comm/communicator.hpp>
#include <omnibal/comm/gather_lengths.hpp>
#include <omnibal/comm/thread_communicator.hpp>
#include <omnibal/comm/two_level_communicator.hpp>
#include <omnibal/exchange/exchange_samples.hpp>
#include <omnibal/exchange/plan_exchange.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::thread_communicator;
using omnibal::two_level_communicator;

static_assert(
    omnibal::communicator<two_level_communicator<thread_communicator, thread_communicator>>);

/// Ranks on nodes, and the communicators of each node and of the first ranks of them.
class clusters {
 public:
  explicit clusters(std::vector<std::uint32_t> node_of)
      : node_of_(std::move(node_of)),
        sizes_(1 + *std::max_element(node_of_.begin(), node_of_.end())) {
    for (std::uint32_t const node : node_of_) place_.push_back(sizes_[node]++);
    for (std::size_t const size : sizes_)
      nodes_.push_back(std::make_unique<test::kept_ranks>(size));
    leaders_ = std::make_unique<test::kept_ranks>(sizes_.size());
  }

  /// `named` is what the rank calls itself.
  [[nodiscard]] auto of(std::size_t rank, std::size_t named) {
    thread_communicator const node = nodes_[node_of_[rank]]->of(place_[rank]);
    bool const leads = place_[rank] == 0;
    return two_level_communicator(named, node, leads ? leaders_->of(node_of_[rank]) : node);
  }

 private:
  std::vector<std::uint32_t> node_of_;
  std::vector<std::size_t> sizes_;
  std::vector<std::size_t> place_;
  std::vector<std::unique_ptr<test::kept_ranks>> nodes_;
  std::unique_ptr<test::kept_ranks> leaders_;
};

}  // namespace

TEST_CASE("a gather in two levels is that of all ranks, whatever the nodes") {
  test::watchdog const limit;
  for (std::vector<std::uint32_t> const& node_of :
       {std::vector<std::uint32_t>{0}, {0, 0, 0}, {0, 1, 2}, {0, 0, 1, 1}, {1, 0, 1, 0, 1, 2, 2}}) {
    clusters nodes(node_of);
    thread_communicator::run(node_of.size(), [&](thread_communicator& flat) {
      auto comm = nodes.of(flat.rank(), flat.rank());
      test::require(comm.rank() == flat.rank() && comm.size() == flat.size(), "rank and size");
      for (std::size_t const count : {1u, 5u, 0u, 64u}) {
        std::vector<std::uint16_t> const own(count, static_cast<std::uint16_t>(7 * comm.rank()));
        test::require(omnibal::all_gather(comm, own) == omnibal::all_gather(flat, own), "values");
      }
      std::vector<std::int64_t> lengths(comm.rank() % 3, 100);
      for (auto& length : lengths) length += static_cast<std::int64_t>(comm.rank());
      test::require(
          omnibal::gather_lengths(comm, lengths) == omnibal::gather_lengths(flat, lengths),
          "lengths");
      auto const plan = omnibal::plan_exchange(comm, lengths, std::identity{}, std::identity{});
      auto const same = omnibal::plan_exchange(flat, lengths, std::identity{}, std::identity{});
      test::require(plan.digest() == same.digest(), "plans");
      auto const failing = [&](std::int64_t) -> std::int64_t {
        if (comm.rank() == 0) throw std::domain_error("a cost");
        return 1;
      };
      std::vector<std::int64_t> const one{1};
      auto const found = test::error_of<std::domain_error, omnibal::communication_error>(
          [&] { static_cast<void>(omnibal::plan_exchange(comm, one, failing, std::identity{})); });
      test::require(found == (comm.rank() == 0 ? test::seen::own : test::seen::remote), "errors");
      test::require(omnibal::all_equal(comm, 3), "the communicator goes on");
    });
  }
}

TEST_CASE("ranks that are not each there once are refused on all") {
  test::watchdog const limit;
  for (std::size_t const wrong : {0u, 9u}) {
    clusters nodes({0, 0, 1, 1, 1});
    thread_communicator::run(5, [&](thread_communicator& flat) {
      auto const text = test::error_text<std::invalid_argument>([&] {
        static_cast<void>(nodes.of(flat.rank(), flat.rank() == 3 ? wrong : flat.rank()));
      });
      test::require(
          text == (wrong == 0 ? "omnibal::two_level_communicator: sorted, rank[1] is 0, must be 1"
                              : "omnibal::two_level_communicator: sorted, rank[3] is 4, must be 3"),
          text);
    });
  }
}
