#pragma once

/// \file
/// The samples of each rank, of which single ones go to other ranks.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace omnibal::inline v0::detail {

/// A list of samples for each rank, in an order of the caller. Keeps its memory.
class sample_lists {
 public:
  /// `rank_of` has the rank of each sample; the lists have the samples in the order of `order`.
  void fill(std::span<std::uint32_t const> order, std::span<std::uint32_t const> rank_of,
            std::size_t ranks) {
    first_.assign(ranks, none);
    next_.resize(rank_of.size());
    previous_.resize(rank_of.size());
    for (std::size_t i = order.size(); i-- != 0;) {
      std::uint32_t const rank = rank_of[order[i]];
      link(order[i], rank, none, first_[rank]);
    }
  }

  /// Adds a sample before the first one that does not precede it.
  template <class Precedes>
  void insert(std::uint32_t sample, std::uint32_t rank, Precedes const& precedes) {
    std::uint32_t previous = none;
    std::uint32_t next = first_[rank];
    while (next != none && precedes(next, sample)) {
      previous = next;
      next = next_[next];
    }
    link(sample, rank, previous, next);
  }

  /// Precondition: the sample is in the list of that rank.
  void remove(std::uint32_t sample, std::uint32_t rank) {
    std::uint32_t const next = next_[sample];
    std::uint32_t const previous = previous_[sample];
    if (next != none) previous_[next] = previous;
    (previous == none ? first_[rank] : next_[previous]) = next;
  }

  /// Calls `body(sample)` for each sample of a rank.
  template <class Body>
  void for_each(std::uint32_t rank, Body const& body) const {
    for (std::uint32_t i = first_[rank]; i != none; i = next_[i]) body(i);
  }

 private:
  static constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();

  void link(std::uint32_t sample, std::uint32_t rank, std::uint32_t previous, std::uint32_t next) {
    next_[sample] = next;
    previous_[sample] = previous;
    if (next != none) previous_[next] = sample;
    (previous == none ? first_[rank] : next_[previous]) = sample;
  }

  std::vector<std::uint32_t> first_;
  std::vector<std::uint32_t> next_;
  std::vector<std::uint32_t> previous_;
};

}  // namespace omnibal::inline v0::detail
