// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The parametric flow that splits tokens over the copies of their experts.

#include <omnibal/experts/token_counts.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

namespace omnibal::inline v0::detail {

/// A parametric flow of tokens from experts to the ranks with their copies. The parameter,
/// `largest_`, is the largest number of tokens of a rank. Newton's method raises the parameter from
/// the mean. If no augmenting path leads from a rank above the parameter to a rank below it, the
/// reached ranks are a minimum cut. The mean of their loads, rounded up, is the next parameter.
/// Memory is kept from call to call.
class split_flow {
 public:
  /// Splits the tokens. `slots` has the expert of each slot, the same number of slots for each
  /// rank, and `loads` has the tokens that ranks have in addition to the split tokens. Writes the
  /// tokens of each slot to `split`, and adds the tokens of each rank to `loads`. Returns the first
  /// expert that has tokens and no slot, or the number of experts if there is none. Preconditions:
  /// no number is negative, and the sum of all tokens is below 2^63.
  [[nodiscard]] std::size_t run(std::span<std::int64_t const> tokens,
                                std::span<std::uint32_t const> slots,
                                std::vector<std::int64_t>& split,
                                std::vector<std::int64_t>& loads) {
    slots_ = slots;
    split_ = &split;
    loads_ = &loads;
    find_copies(tokens);
    for (std::size_t e = 0; e != tokens.size(); ++e) {
      if (tokens[e] == 0) continue;
      if (copies(e).empty()) return e;
      if (copies(e).size() > 1) fill(e, tokens[e]);
    }
    std::int64_t total = 0;
    for (std::int64_t const load : loads) total += load;
    largest_ = ceiled_mean(total, static_cast<std::int64_t>(loads.size()));
    cut_.resize(loads.size());
    std::iota(cut_.begin(), cut_.end(), std::uint32_t{0});
    while (reach()) push();
    return tokens.size();
  }

  /// Returns the largest number of tokens of a rank.
  [[nodiscard]] std::int64_t largest() const { return largest_; }
  /// Returns the ranks of the last cut in ascending order; all ranks if the mean is reached.
  [[nodiscard]] std::span<std::uint32_t const> cut() const { return cut_; }

 private:
  static constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();

  /// The slots between which tokens move in the step by which the search reached a rank; `none` for
  /// ranks at which the search starts.
  struct step {
    std::uint32_t from;
    std::uint32_t to;
    bool is_reached;
  };

  [[nodiscard]] std::span<std::uint32_t const> copies(std::size_t expert) const {
    return std::span(copies_).subspan(first_copy_[expert],
                                      first_copy_[expert + 1] - first_copy_[expert]);
  }

  /// Lists the slots of each expert, and for each rank its slots of experts with several copies.
  /// The tokens of experts with one copy go to this copy.
  void find_copies(std::span<std::int64_t const> tokens) {
    std::size_t const ranks = loads_->size();
    std::size_t const per_rank = slots_.size() / ranks;
    first_copy_.assign(tokens.size() + 2, 0);
    for (std::uint32_t const expert : slots_) ++first_copy_[expert + 2];
    for (std::size_t e = 0; e != tokens.size(); ++e) first_copy_[e + 2] += first_copy_[e + 1];
    copies_.resize(slots_.size());
    rank_of_.resize(slots_.size());
    split_->assign(slots_.size(), 0);
    for (std::size_t s = 0; s != slots_.size(); ++s) {
      copies_[first_copy_[slots_[s] + 1]++] = static_cast<std::uint32_t>(s);
    }
    shared_.clear();
    first_shared_.assign(1, 0);
    std::size_t s = 0;
    for (std::size_t r = 0; r != ranks; ++r) {
      for (std::size_t const end = s + per_rank; s != end; ++s) {
        std::uint32_t const expert = slots_[s];
        rank_of_[s] = static_cast<std::uint32_t>(r);
        if (first_copy_[expert + 1] - first_copy_[expert] != 1) {
          shared_.push_back(static_cast<std::uint32_t>(s));
          continue;
        }
        (*split_)[s] = tokens[expert];
        (*loads_)[r] += tokens[expert];
      }
      first_shared_.push_back(static_cast<std::uint32_t>(shared_.size()));
    }
  }

  /// Distributes `left` tokens of an expert over its copies, from the rank with the smallest load
  /// on. Afterwards the loads of the ranks that receive tokens differ by at most one.
  void fill(std::size_t expert, std::int64_t left) {
    order_.clear();
    for (std::uint32_t const slot : copies(expert)) {
      // A second copy on a rank, which follows the first copy in the list, receives no tokens.
      if (order_.empty() || rank_of_[order_.back()] != rank_of_[slot]) order_.push_back(slot);
    }
    auto const load = [&](std::size_t place) { return (*loads_)[rank_of_[order_[place]]]; };
    for (std::size_t i = 1; i != order_.size(); ++i) {
      for (std::size_t j = i; j != 0 && load(j) < load(j - 1); --j) {
        std::swap(order_[j], order_[j - 1]);
      }
    }
    std::size_t used = 1;
    for (; used != order_.size(); ++used) {
      auto const count = static_cast<std::int64_t>(used);
      std::int64_t const rise = load(used) - load(used - 1);
      if (rise > (left - 1) / count) break;
      left -= rise * count;
    }
    auto const count = static_cast<std::int64_t>(used);
    std::int64_t const level = load(used - 1) + left / count;
    std::int64_t more = left % count;
    for (std::size_t i = 0; i != used; ++i) {
      std::int64_t& rank_load = (*loads_)[rank_of_[order_[i]]];
      std::int64_t const moved = level - rank_load + (more > 0 ? 1 : 0);
      --more;
      (*split_)[order_[i]] = moved;
      rank_load += moved;
    }
  }

  /// Searches breadth first from the ranks above `largest_` for ranks below it, up to the first
  /// level that contains such a rank. If there is no such rank, raises `largest_` and repeats.
  /// Returns false if no rank is above `largest_`.
  [[nodiscard]] bool reach() {
    for (;;) {
      start();
      if (queue_.empty()) return false;
      expand();
      if (!targets_.empty()) return true;
      std::int64_t sum = 0;
      for (std::uint32_t const rank : queue_) sum += (*loads_)[rank];
      largest_ = ceiled_mean(sum, static_cast<std::int64_t>(queue_.size()));
      cut_.assign(queue_.begin(), queue_.end());
      std::sort(cut_.begin(), cut_.end());
    }
  }

  /// Starts a search from the ranks whose loads are above `largest_`.
  void start() {
    queue_.clear();
    targets_.clear();
    steps_.assign(loads_->size(), step{none, none, false});
    for (std::size_t r = 0; r != loads_->size(); ++r) {
      if ((*loads_)[r] <= largest_) continue;
      steps_[r].is_reached = true;
      queue_.push_back(static_cast<std::uint32_t>(r));
    }
  }

  /// Reaches ranks level by level, up to the first level with a rank whose load is below
  /// `largest_`.
  void expand() {
    for (std::size_t next = 0; next != queue_.size() && targets_.empty();) {
      for (std::size_t const end = queue_.size(); next != end; ++next) visit(queue_[next]);
    }
  }

  /// Reaches all ranks to which tokens of `rank` can move directly.
  void visit(std::uint32_t rank) {
    for (std::uint32_t i = first_shared_[rank]; i != first_shared_[rank + 1]; ++i) {
      std::uint32_t const from = shared_[i];
      if ((*split_)[from] == 0) continue;
      for (std::uint32_t const to : copies(slots_[from])) {
        std::uint32_t const other = rank_of_[to];
        if (steps_[other].is_reached) continue;
        steps_[other] = {from, to, true};
        queue_.push_back(other);
        if ((*loads_)[other] < largest_) targets_.push_back(other);
      }
    }
  }

  /// Pushes tokens along the path to each rank of the last level whose load is below `largest_`.
  void push() {
    for (std::uint32_t const target : targets_) {
      std::int64_t amount = largest_ - (*loads_)[target];
      std::uint32_t source = target;
      for (; steps_[source].from != none; source = rank_of_[steps_[source].from]) {
        amount = std::min(amount, (*split_)[steps_[source].from]);
      }
      amount = std::min(amount, (*loads_)[source] - largest_);
      for (std::uint32_t r = target; r != source; r = rank_of_[steps_[r].from]) {
        (*split_)[steps_[r].from] -= amount;
        (*split_)[steps_[r].to] += amount;
      }
      (*loads_)[source] -= amount;
      (*loads_)[target] += amount;
    }
  }

  std::span<std::uint32_t const> slots_;
  std::vector<std::int64_t>* split_ = nullptr;
  std::vector<std::int64_t>* loads_ = nullptr;
  std::int64_t largest_ = 0;
  /// The position of the first copy of each expert in `copies_`, the slots of all copies, and the
  /// rank of each slot.
  std::vector<std::uint32_t> first_copy_;
  std::vector<std::uint32_t> copies_;
  std::vector<std::uint32_t> rank_of_;
  /// For each rank the position of its first slot in `shared_`, and the slots of experts with
  /// several copies.
  std::vector<std::uint32_t> first_shared_;
  std::vector<std::uint32_t> shared_;
  std::vector<std::uint32_t> order_;
  std::vector<step> steps_;
  std::vector<std::uint32_t> queue_;
  std::vector<std::uint32_t> targets_;
  std::vector<std::uint32_t> cut_;
};

}  // namespace omnibal::inline v0::detail
