// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Exchange plans and their options.

#include <omnibal/balance/index_measure.hpp>
#include <omnibal/check.hpp>
#include <omnibal/detail/data_digest.hpp>
#include <omnibal/detail/integer_costs.hpp>
#include <omnibal/detail/node_layout.hpp>
#include <omnibal/detail/part_speeds.hpp>
#include <omnibal/grouping.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <ranges>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace omnibal::inline v0 {

struct make_plan_options {
  /// The number of ranks per node: ranks 0 .. ranks_per_node - 1 are one node, the next
  /// `ranks_per_node` ranks are the next node, and so on; the last node may have fewer ranks. The
  /// number is positive. With 1, the default, every rank is its own node; with the number of ranks
  /// there is one node. Zero is an error; only `context_groups_options` accepts zero, to ignore
  /// nodes. Samples stay on their node if they fit, and the assignment of parts to ranks keeps the
  /// bytes that leave a node small.
  std::size_t ranks_per_node = 1;
  /// The node number of each rank; numbers may be arbitrary. Set it if nodes differ in size or
  /// ranks are not numbered by node. The array must outlive these options.
  detail::node_numbers node_of = {};
  /// The share of a lower bound by which the largest load may exceed the bound; see `rebalance`.
  /// Other balancers ignore this option.
  double max_overload = 0.01;
  /// The speed of each rank, or one value for all; empty for equal speeds. With different speeds,
  /// plans minimize the largest load over speed. Only `rebalance`, and balancers with the same call
  /// that return the part of each rank, accept different speeds. The array must outlive these
  /// options.
  detail::speed_list speeds = {};
};

struct placement_options {
  /// The number of ranks per node, as in `make_plan_options`.
  std::size_t ranks_per_node = 1;
  detail::node_numbers node_of = {};
};

namespace detail {

struct plan_writer;

inline void check_exchange_options(std::string_view function, make_plan_options const& options,
                                   std::size_t ranks) {
  check_nodes(function, options, ranks);
  check_max_overload(function, options.max_overload);
}

}  // namespace detail

/// The rank of every sample of a global batch before and after an exchange, for all ranks; equal on
/// all ranks. The samples of rank 0 come first, then the samples of rank 1 and so on. The positions
/// of samples in that order are their indices in a plan.
///
/// An exchange permutes samples: the arrivals of all ranks, one rank after the other, are the
/// samples in another order. A plan stores both directions, and its inverse costs no more than a
/// copy. Memory: 16 bytes per sample and 8 per rank. Determinism: portable. A moved-from object may
/// only be assigned to or destroyed.
class exchange_plan {
 public:
  /// Creates a plan without ranks.
  exchange_plan() = default;

  [[nodiscard]] std::size_t ranks() const { return home_offsets_.size() - 1; }
  [[nodiscard]] std::size_t sample_count() const { return item_at_.size(); }

  /// Returns the offsets: rank r has the samples [offsets[r], offsets[r + 1]) before the exchange.
  [[nodiscard]] std::span<std::uint32_t const> home_offsets() const& { return home_offsets_; }
  [[nodiscard]] std::size_t home_count(std::size_t rank) const { return departures()[rank].size(); }

  /// Returns the samples of each rank after the exchange, in the order of their arrival.
  [[nodiscard]] grouping_view arrivals() const& {
    return {arrival_offsets_.data(), item_at_.data(), ranks()};
  }
  /// Returns the samples of one rank after the exchange. Precondition: `rank < ranks()`, here and
  /// below.
  [[nodiscard]] std::span<std::uint32_t const> arrivals(std::size_t rank) const& {
    return arrivals()[rank];
  }

  /// Returns the destinations of the samples of each rank: positions in the items of `arrivals()`.
  [[nodiscard]] grouping_view departures() const& {
    return {home_offsets_.data(), slot_of_.data(), ranks()};
  }

  /// Returns the bytes of each sample, as measured for this plan, in the order of its samples
  /// before the exchange; also for an inverse. Every rank has the bytes of all samples. Sizes that
  /// follow from these bytes need not be sent; see `sized_field`.
  [[nodiscard]] std::span<std::int64_t const> bytes() const& { return bytes_; }

  /// Temporaries, such as the result of `inverse()`, return no views, because they would dangle.
  void bytes() const&& = delete;
  void home_offsets() const&& = delete;
  void arrivals() const&& = delete;
  void arrivals(std::size_t rank) const&& = delete;
  void departures() const&& = delete;

  /// Returns the rank of a sample before the exchange. Complexity: logarithmic in the ranks.
  [[nodiscard]] std::size_t home_of(std::uint32_t sample) const {
    return owner_of(home_offsets_, sample);
  }
  /// Returns the rank of a sample after the exchange.
  [[nodiscard]] std::size_t destination_of(std::uint32_t sample) const {
    return owner_of(arrival_offsets_, slot_of_[sample]);
  }

  /// Returns the samples that a rank sends to each rank: positions among its own samples, in the
  /// order of their arrival. A rank sends the samples that stay to itself. Complexity: n log n in
  /// its samples.
  [[nodiscard]] grouping sends(std::size_t rank) const {
    std::vector<std::pair<std::uint32_t, std::uint32_t>> slots;
    for (std::uint32_t const slot : departures()[rank]) {
      slots.emplace_back(slot, static_cast<std::uint32_t>(slots.size()));
    }
    std::sort(slots.begin(), slots.end());
    grouping result;
    result.reserve(ranks(), slots.size());
    auto next = slots.begin();
    for (std::size_t to = 0; to != ranks(); ++to) {
      for (; next != slots.end() && next->first < arrival_offsets_[to + 1]; ++next) {
        result.push(next->second);
      }
      result.close();
    }
    return result;
  }

  /// Returns the number of samples that a rank sends to each rank and receives from each, including
  /// itself.
  [[nodiscard]] std::vector<std::uint64_t> send_counts(std::size_t rank) const {
    return counts_by_owner(arrival_offsets_, departures()[rank]);
  }
  [[nodiscard]] std::vector<std::uint64_t> receive_counts(std::size_t rank) const {
    return counts_by_owner(home_offsets_, arrivals()[rank]);
  }

  /// Returns the values of all samples in the order after the exchange. `values` are in the order
  /// before the exchange. `inverse()`, or a plan that continues after this one, has the samples in
  /// that order. Errors: `std::invalid_argument` if the number of values differs from the number of
  /// samples.
  template <std::ranges::random_access_range Values>
  [[nodiscard]] auto permuted(Values const& values) const {
    detail::check_size("exchange_plan::permuted", "values", std::ranges::size(values),
                       sample_count(), "samples");
    std::vector<std::ranges::range_value_t<Values const>> result;
    result.reserve(sample_count());
    auto const first = std::ranges::begin(values);
    for (std::uint32_t const item : item_at_) {
      result.push_back(first[static_cast<std::ranges::range_difference_t<Values const>>(item)]);
    }
    return result;
  }

  /// Returns the number of elements that a rank receives, from the `sizes` of all samples. `sizes`
  /// is a functor of the index of a sample, or a range in the order before the exchange. Errors:
  /// `std::invalid_argument` if the number of sizes is not the number of samples or a size is
  /// negative; `std::overflow_error` if the sum of the sizes exceeds its type.
  template <detail::index_bytes Sizes>
  [[nodiscard]] std::int64_t elements_after(std::size_t rank, Sizes const& sizes) const {
    constexpr std::string_view name = "exchange_plan::elements_after";
    auto const size_of = detail::amounts_by_index(name, "sizes", sizes, sample_count());
    std::int64_t sum = 0;
    for (std::uint32_t const sample : arrivals(rank)) {
      auto const size = detail::checked_cost<std::int64_t>(name, "sizes", sample, size_of(sample));
      detail::checked_add(name, "the sum of the sizes", sum, size);
    }
    return sum;
  }

  /// Returns the bytes of samples that change their rank.
  [[nodiscard]] std::int64_t moved_bytes() const { return moved_bytes_; }
  /// Returns the bytes of samples that change their node.
  [[nodiscard]] std::int64_t moved_bytes_across_nodes() const { return moved_bytes_across_nodes_; }

  /// Returns a number that is equal on two ranks if their plans are equal. Different plans almost
  /// surely have different numbers.
  [[nodiscard]] std::uint64_t digest() const { return digest_; }

  /// Returns the plan that sends all samples back to their place before the exchange.
  [[nodiscard]] exchange_plan inverse() const {
    exchange_plan result;
    inverse_into(result);
    return result;
  }
  /// Writes the inverse into an existing plan and reuses its memory.
  void inverse_into(exchange_plan& result) const {
    result.home_offsets_ = arrival_offsets_;
    result.arrival_offsets_ = home_offsets_;
    result.item_at_ = slot_of_;
    result.slot_of_ = item_at_;
    result.bytes_.resize(item_at_.size());
    for (std::size_t k = 0; k != item_at_.size(); ++k) result.bytes_[k] = bytes_[item_at_[k]];
    result.moved_bytes_ = moved_bytes_;
    result.moved_bytes_across_nodes_ = moved_bytes_across_nodes_;
    result.digest_ = inverse_digest_;
    result.inverse_digest_ = digest_;
  }

  /// Compares the places of all samples before and after the exchange, but not their bytes.
  [[nodiscard]] friend bool operator==(exchange_plan const& left, exchange_plan const& right) {
    return left.home_offsets_ == right.home_offsets_ &&
           left.arrival_offsets_ == right.arrival_offsets_ && left.item_at_ == right.item_at_;
  }

 private:
  friend struct detail::plan_writer;

  using indices = std::vector<std::uint32_t>;

  [[nodiscard]] static std::size_t owner_of(indices const& offsets, std::uint32_t position) {
    auto const after = std::upper_bound(offsets.begin(), offsets.end(), position);
    return static_cast<std::size_t>(after - offsets.begin()) - 1;
  }
  [[nodiscard]] static std::vector<std::uint64_t> counts_by_owner(
      indices const& offsets, std::span<std::uint32_t const> positions) {
    std::vector<std::uint64_t> counts(offsets.size() - 1, 0);
    for (std::uint32_t const position : positions) ++counts[owner_of(offsets, position)];
    return counts;
  }

  indices home_offsets_{0};
  indices arrival_offsets_{0};
  indices item_at_;
  indices slot_of_;
  std::vector<std::int64_t> bytes_;
  std::int64_t moved_bytes_ = 0;
  std::int64_t moved_bytes_across_nodes_ = 0;
  std::uint64_t digest_ = 0;
  std::uint64_t inverse_digest_ = 0;
};

namespace detail {

/// Fills a plan: `start`, then `push` for the sample of each slot in order with `close` after the
/// last sample of a rank, then `finish`. Reuses the memory of the plan.
struct plan_writer {
  exchange_plan& plan;

  void start(std::span<std::uint32_t const> home_offsets) const {
    plan.home_offsets_.assign(home_offsets.begin(), home_offsets.end());
    plan.arrival_offsets_.assign(1, 0);
    plan.item_at_.clear();
    plan.item_at_.reserve(home_offsets.back());
  }

  void push(std::uint32_t sample) const { plan.item_at_.push_back(sample); }
  void close() const {
    plan.arrival_offsets_.push_back(static_cast<std::uint32_t>(plan.item_at_.size()));
  }

  /// Completes the plan; `bytes_of` returns the bytes of a sample. Precondition: each sample was
  /// pushed once.
  template <class BytesOf>
  void finish(given_nodes const& nodes, BytesOf const& bytes_of) const {
    plan.slot_of_.resize(plan.item_at_.size());
    for (std::uint32_t slot = 0; slot != plan.item_at_.size(); ++slot) {
      plan.slot_of_[plan.item_at_[slot]] = slot;
    }
    plan.digest_ = digest_of(plan.home_offsets_, plan.arrival_offsets_, plan.item_at_);
    plan.inverse_digest_ = digest_of(plan.arrival_offsets_, plan.home_offsets_, plan.slot_of_);
    set_bytes(nodes, bytes_of);
  }

  /// Stores the bytes of each sample and sums the bytes that move.
  template <class BytesOf>
  void set_bytes(given_nodes const& nodes, BytesOf const& bytes_of) const {
    plan.bytes_.resize(plan.item_at_.size());
    for (std::uint32_t s = 0; s != plan.bytes_.size(); ++s) plan.bytes_[s] = bytes_of(s);
    plan.moved_bytes_ = 0;
    plan.moved_bytes_across_nodes_ = 0;
    for (std::size_t rank = 0; rank != plan.ranks(); ++rank) {
      std::uint32_t const first = plan.home_offsets_[rank];
      std::uint32_t const last = plan.home_offsets_[rank + 1];
      for (std::uint32_t const sample : plan.arrivals(rank)) {
        if (sample >= first && sample < last) continue;
        std::int64_t const bytes = plan.bytes_[sample];
        plan.moved_bytes_ += bytes;
        if (nodes(plan.home_of(sample)) != nodes(rank)) {
          plan.moved_bytes_across_nodes_ += bytes;
        }
      }
    }
  }

 private:
  using indices = std::vector<std::uint32_t>;

  [[nodiscard]] static std::uint64_t digest_of(indices const& home_offsets,
                                               indices const& arrival_offsets,
                                               indices const& items) {
    data_digest digest;
    digest.add(std::uint64_t{home_offsets.size()});
    for (std::size_t r = 0; r != home_offsets.size(); ++r) {
      digest.add(std::uint64_t{home_offsets[r]} << 32 | arrival_offsets[r]);
    }
    for (std::size_t i = 0; i < items.size(); i += 2) {
      std::uint64_t const second = i + 1 < items.size() ? items[i + 1] : 0;
      digest.add(second << 32 | items[i]);
    }
    return digest.value();
  }
};

}  // namespace detail

}  // namespace omnibal::inline v0
