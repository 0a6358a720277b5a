#pragma once

/// \file
/// The order in which the largest differencing method combines its tuples.

#include <omnibal/balance/detail/costs.hpp>
#include <omnibal/balance/detail/load_tuples.hpp>
#include <omnibal/balance/detail/part_room.hpp>
#include <omnibal/balance/detail/place_longest_first.hpp>
#include <omnibal/balance/detail/ranked_load.hpp>
#include <omnibal/config.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace omnibal::inline v0::detail {

/// Combines the two tuples with the largest differences until one is left.
template <class Word>
class differencing {
 public:
  /// `samples` have costs above zero and are in the order of `largest_first`.
  differencing(whole_costs<1> const& costs, std::span<std::uint32_t const> samples,
               std::size_t parts)
      : samples_(samples), tuples_(costs, samples, parts) {}

  /// Calls `body(sample, part)` for each sample.
  template <class Body>
  void run(Body const& body) {
    if (samples_.empty()) return;
    tuple_type largest = take_largest();
    while (next_ != samples_.size() || !waiting_.empty()) {
      largest = tuples_.combine(largest, take_largest());
      if (is_largest(largest)) continue;
      put(largest);
      largest = take_largest();
    }
    tuples_.for_each_sample(
        largest, [&](std::uint32_t part, std::uint32_t place) { body(samples_[place], part); });
  }

 private:
  using tuple_type = typename load_tuples<Word>::tuple;

  struct waiting_tuple {
    std::int64_t difference;
    std::uint32_t number;
    tuple_type tuple;

    /// Of equal differences the older tuple goes first.
    friend bool operator<(waiting_tuple const& a, waiting_tuple const& b) {
      return a.difference < b.difference || (a.difference == b.difference && a.number > b.number);
    }
  };

  /// Tuples of one sample come from the sorted samples, the others from the heap and first.
  [[nodiscard]] bool is_sample_next() const {
    if (next_ == samples_.size()) return false;
    return waiting_.empty() || waiting_.front().difference < tuples_.of_sample(next_).largest;
  }

  [[nodiscard]] tuple_type take_largest() {
    if (is_sample_next()) return tuples_.of_sample(next_++);
    std::pop_heap(waiting_.begin(), waiting_.end());
    tuple_type const result = waiting_.back().tuple;
    waiting_.pop_back();
    return result;
  }

  void put(tuple_type const& tuple) {
    waiting_.push_back({tuples_.difference(tuple), number_++, tuple});
    std::push_heap(waiting_.begin(), waiting_.end());
  }

  /// True where no other tuple has a larger difference.
  [[nodiscard]] bool is_largest(tuple_type const& tuple) {
    std::int64_t const difference = tuples_.difference(tuple);
    return (next_ == samples_.size() || difference >= tuples_.of_sample(next_).largest) &&
           (waiting_.empty() || difference >= waiting_.front().difference);
  }

  std::span<std::uint32_t const> samples_;
  std::uint32_t next_ = 0;
  load_tuples<Word> tuples_;
  std::vector<waiting_tuple> waiting_;
  std::uint32_t number_ = 0;
};

/// Numbers the parts by their least samples.
inline void number_by_least_sample(std::vector<std::uint32_t>& part_of, std::size_t parts) {
  constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();
  std::vector<std::uint32_t> number_of(parts, none);
  std::uint32_t count = 0;
  for (std::uint32_t& part : part_of) {
    if (number_of[part] == none) number_of[part] = count++;
    part = number_of[part];
  }
}

/// The part of each sample by the largest differencing method; samples without cost go where the
/// fewest samples are.
[[nodiscard]] inline std::vector<std::uint32_t> difference_largest(whole_costs<1> const& costs,
                                                                   std::size_t parts) {
  std::vector<std::uint32_t> part_of(costs.size(), 0);
  if (parts == 1) return part_of;
  std::vector<std::uint32_t> const order = largest_first(costs);
  std::size_t const costly = count_costly(costs, std::span(order));
  part_room room(parts);
  auto const assign = [&](std::uint32_t sample, std::uint32_t part) {
    part_of[sample] = part;
    room.add(part);
  };
  if (ranked_load<std::uint64_t>::can_hold(total_of(costs)[0], parts)) {
    differencing<std::uint64_t>(costs, std::span(order).first(costly), parts).run(assign);
  } else {
    differencing<uint128>(costs, std::span(order).first(costly), parts).run(assign);
  }
  place_costless(std::span(order).subspan(costly), room, part_of);
  number_by_least_sample(part_of, parts);
  return part_of;
}

}  // namespace omnibal::inline v0::detail
