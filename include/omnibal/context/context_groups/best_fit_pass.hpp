// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// A pass of best fit over the remaining samples: the pass adds samples to the groups of a
/// micro-step under a deadline, and reports each placement to the filling.

#include <omnibal/context/context_cost.hpp>
#include <omnibal/context/context_groups/bucket_queue.hpp>
#include <omnibal/context/context_groups/instance.hpp>
#include <omnibal/context/context_groups/micro_step_groups.hpp>
#include <omnibal/context/context_groups/rank_windows.hpp>
#include <omnibal/context/context_groups/schedule.hpp>
#include <omnibal/detail/remaining_indices.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace omnibal::inline v0::detail {

/// The samples to place in a micro-step, [first, end) of the instance, and the conditions of the
/// placement. `deadline` is the time by which all groups end. The member `min_degree_index` is the
/// least degree of new groups; smaller degrees are used only if no degree from it on is possible.
struct placement_request {
  std::uint32_t first = 0;
  std::uint32_t end = 0;
  std::uint32_t min_degree_index = 0;
  double deadline = 0;
};

/// A degree with groups in this micro-step. If consecutive samples have found no room in these
/// groups, the next `samples_to_skip` samples do not try these groups.
struct used_degree {
  std::uint32_t degree_index = 0;
  std::uint32_t misses = 0;
  std::uint32_t samples_to_skip = 0;
};

/// The memory of `best_fit_pass`, reused between calls: the degrees in use with the queues of their
/// groups.
struct best_fit_buffers {
  std::vector<used_degree> used{};
  /// The position of each degree in `used`, by degree index.
  std::vector<std::uint32_t> slot_of{};
  /// The queue of the groups of each degree in `used`.
  std::vector<bucket_queue> queues{};
  /// The links of the queues, by group of the schedule.
  std::vector<std::uint32_t> next_group{};
};

/// Best fit of one sample at a time under a deadline. The groups of each degree are sorted by the
/// larger of two shares: of their time in the deadline, and of their bytes in the capacity.
class best_fit_pass {
 public:
  static constexpr std::uint32_t none = ~std::uint32_t{0};

  /// Precondition: the groups of the micro-step end by the deadline of the request.
  best_fit_pass(context_instance const& instance, micro_step_groups& groups,
                placement_request const& request, best_fit_buffers& buffers)
      : instance_(instance),
        groups_(groups),
        request_(request),
        buffers_(buffers),
        per_time_(request.deadline > 0 ? 1 / request.deadline : 0),
        per_byte_(instance.capacity > 0 ? 1 / static_cast<double>(instance.capacity) : 0) {
    buffers_.used.clear();
    buffers_.slot_of.assign(instance.degrees.size(), none);
    buffers_.next_group.resize(groups.end());
    for (std::uint32_t g = groups.first(); g != groups.end(); ++g) include(g);
  }

  /// Places the remaining samples that fit, in existing or new groups, in ascending order of
  /// samples. Calls `record(sample, group)` right after the group has the sample; `record` removes
  /// the sample from `remaining`. If many similar samples in a row do not fit, more and more of
  /// them are skipped.
  template <class Record>
  void run(remaining_indices& remaining, Record const& record) {
    auto const count = static_cast<std::uint32_t>(instance_.samples.size());
    std::uint32_t stride = 1;
    std::uint32_t misses = 0;
    for (std::uint32_t i = request_.first; i < request_.end; i = remaining.first_from(i)) {
      std::uint32_t const group = place(instance_.samples[i]);
      if (group != none) {
        record(i, group);
        misses = 0;
        stride = 1;
        ++i;
        continue;
      }
      if (++misses > max_misses) stride *= 2;
      i = std::max(i + std::min(stride, count - i), first_short_enough(i));
    }
  }

 private:
  /// After this number of consecutive misfits, some samples are skipped.
  static constexpr std::uint32_t max_misses = 8;
  /// The number of groups that a search for room checks.
  static constexpr std::size_t asked_groups = 8;
  /// The number of groups that are compared to find the least loaded one.
  static constexpr std::size_t max_compared = 64;
  /// The largest room of a group, or slightly more because of rounding errors.
  static constexpr double full_room = 1 + 1e-9;
  /// After `max_tries` consecutive samples without room in the groups of a degree, some samples do
  /// not try these groups: at most `max_skipped` in a row.
  static constexpr std::uint32_t max_tries = 2;
  static constexpr std::uint32_t max_skipped = 8;

  /// Puts a sample into an existing group or a group that is opened for it. Returns the group, or
  /// `none` if no group can hold the sample.
  [[nodiscard]] std::uint32_t place(context_sample const& sample) {
    std::uint32_t const new_degree_index =
        groups_.are_ranks_left() ? degree_index_of_new_group(sample) : none;
    if (new_degree_index != none) {
      std::uint32_t const group = join(sample, new_degree_index);
      return group == none ? open(sample, new_degree_index) : group;
    }
    for (std::size_t slot = buffers_.used.size(); slot-- != 0;) {
      used_degree& used = buffers_.used[slot];
      if (used.samples_to_skip != 0) {
        --used.samples_to_skip;
        continue;
      }
      std::uint32_t const group = join(sample, used.degree_index);
      if (group != none) {
        used.misses = 0;
        return group;
      }
      if (++used.misses >= max_tries) {
        used.samples_to_skip = std::min(used.misses - max_tries + 1, max_skipped);
      }
    }
    return none;
  }

  /// Returns the index of the least degree, from `request_.min_degree_index` on if possible, with
  /// which a sample ends by the deadline and for which there are ranks; `none` if there is no such
  /// degree.
  [[nodiscard]] std::uint32_t degree_index_of_new_group(context_sample const& sample) const {
    std::uint32_t const degree_index = degree_index_from(sample, request_.min_degree_index);
    if (degree_index != none || request_.min_degree_index == 0) return degree_index;
    return degree_index_from(sample, 0);
  }

  /// Returns the index of the least degree, from `min_degree_index` on, with which a sample ends by
  /// the deadline on the fastest ranks; `none` if there are no ranks for it. If the free ranks are
  /// too slow or have too little capacity, larger degrees are tried next. With equal capacities,
  /// these have at least twice the ranks.
  [[nodiscard]] std::uint32_t degree_index_from(context_sample const& sample,
                                                std::uint32_t min_degree_index) const {
    auto const& degrees = instance_.degrees;
    std::uint32_t d = instance_.first_in_time(sample, request_.deadline, min_degree_index);
    if (instance_.has_equal_ranks()) return groups_.has_ranks_for(d) ? d : none;
    while (d != degrees.size()) {
      rank_window const* const window = groups_.find_window(sample, d);
      bool const ends_in_time =
          window != nullptr &&
          instance_.time_alone(sample, d, window->slowness) <= request_.deadline;
      if (ends_in_time) return d;
      std::uint32_t const ranks = instance_.has_equal_capacities() ? degrees[d].ranks : 0;
      ++d;
      while (d != degrees.size() && degrees[d].ranks / 2 < ranks) ++d;
    }
    return none;
  }

  /// Returns the first sample from `i` on that may find room: there are ranks for it, or a group
  /// has enough time and bytes left. Bisection finds the sample, because samples descend in length.
  [[nodiscard]] std::uint32_t first_short_enough(std::uint32_t i) const {
    auto const& samples = instance_.samples;
    auto found = samples.end();
    if (groups_.are_ranks_left()) {
      found = std::partition_point(samples.begin() + i, found, [&](context_sample const& sample) {
        return degree_index_of_new_group(sample) == none;
      });
    }
    for (used_degree const& used : buffers_.used) {
      std::uint32_t const degree_index = used.degree_index;
      bucket_queue const& queue = buffers_.queues[buffers_.slot_of[degree_index]];
      if (queue.empty()) continue;
      if (found == samples.begin() + i) break;
      degree_time const& time = instance_.degrees[degree_index].time;
      // A room is a share of the deadline and of the capacity.
      auto const is_too_long_for = [&](double room) {
        double const longest = max_length_within(time, room * request_.deadline);
        double const bytes = room * static_cast<double>(instance_.capacity);
        return [this, degree_index, longest, bytes](context_sample const& sample) {
          return sample.tokens > longest ||
                 static_cast<double>(groups_.bytes_of(sample, degree_index)) > bytes;
        };
      };
      // Most degrees have no room even for the shortest sample before `found`.
      if (is_too_long_for(full_room - bucket_queue::share_of(queue.lowest()))(found[-1])) continue;
      found = std::partition_point(samples.begin() + i, found,
                                   is_too_long_for(full_room - min_share(queue)));
    }
    return static_cast<std::uint32_t>(found - samples.begin());
  }

  /// Puts a sample into the most loaded group of a degree in which it ends in time.
  [[nodiscard]] std::uint32_t join(context_sample const& sample, std::uint32_t degree_index) {
    std::uint32_t const slot = buffers_.slot_of[degree_index];
    if (degree_index < sample.min_degree_index || slot == none) return none;
    double const added = instance_.added_time(sample, degree_index);
    double const max_load = request_.deadline - added * instance_.degrees[degree_index].slowness;
    std::int64_t const bytes = groups_.bytes_of(sample, degree_index);
    std::int64_t const max_bytes = instance_.capacity - bytes;
    if (!(max_load >= 0) || max_bytes < 0) return none;
    auto const has_room = [&](std::uint32_t g) {
      return groups_[g].time <= request_.deadline - added * groups_[g].slowness &&
             groups_[g].bytes <= max_bytes;
    };
    // Groups in buckets below `sure` certainly have room. In the buckets from there to `above`,
    // groups may have room in time but not in bytes, or the reverse.
    double const by_time = max_load * per_time_;
    double const by_time_on_slowest =
        (request_.deadline - added * instance_.max_slowness) * per_time_;
    double const by_bytes = static_cast<double>(max_bytes) * per_byte_;
    std::size_t const sure = bucket_queue::bucket_of(std::min(by_time_on_slowest, by_bytes));
    std::size_t const above = bucket_queue::bucket_of(std::max(by_time, by_bytes));
    bucket_queue& queue = buffers_.queues[slot];
    auto& next = buffers_.next_group;
    std::uint32_t group = queue.take_below(sure, asked_groups, next, has_room);
    if (group == none && sure != 0) {
      group = queue.take_below(sure - 1, asked_groups, next, has_room);
    }
    if (group == none && above != sure) {
      group = queue.take_below(above, asked_groups, next, has_room);
    }
    if (group == none) return none;
    groups_.add(group, added * groups_[group].slowness, bytes);
    insert(group);
    return group;
  }

  [[nodiscard]] std::uint32_t open(context_sample const& sample, std::uint32_t degree_index) {
    std::uint32_t const group = groups_.open(sample, degree_index);
    buffers_.next_group.resize(groups_.end());
    include(group);
    return group;
  }

  /// Adds a group to the pass, and a queue if the group is the first of its degree.
  void include(std::uint32_t group) {
    std::uint32_t const degree_index = groups_[group].degree_index;
    std::uint32_t& slot = buffers_.slot_of[degree_index];
    if (slot == none) {
      slot = static_cast<std::uint32_t>(buffers_.used.size());
      buffers_.used.push_back({degree_index});
      if (buffers_.queues.size() < buffers_.used.size()) buffers_.queues.emplace_back();
      buffers_.queues[slot].clear();
    }
    insert(group);
  }

  /// Inserts a group into the queue of its degree.
  void insert(std::uint32_t group) {
    filled_group const& inserted = groups_[group];
    buffers_.queues[buffers_.slot_of[inserted.degree_index]].insert(
        group, bucket_queue::bucket_of(share_of(inserted)), buffers_.next_group);
  }

  /// Returns the larger share: of the deadline, or of the capacity.
  [[nodiscard]] double share_of(filled_group const& group) const {
    return std::max(group.time * per_time_, static_cast<double>(group.bytes) * per_byte_);
  }

  /// Returns the share of the least loaded group, or a lower bound on the share.
  [[nodiscard]] double min_share(bucket_queue const& queue) const {
    std::size_t asked = 0;
    double least = 1;
    std::uint32_t group = queue.first(queue.lowest());
    for (; group != bucket_queue::none && asked != max_compared; ++asked) {
      least = std::min(least, share_of(groups_[group]));
      group = buffers_.next_group[group];
    }
    if (group == bucket_queue::none) return least;
    return bucket_queue::share_of(queue.lowest());
  }

  /// Returns the length above which samples surely take more time than `room` on a degree.
  [[nodiscard]] static double max_length_within(degree_time const& time, double room) {
    double const unlimited = std::numeric_limits<double>::infinity();
    if (room < 0) return -1;
    double const by_tokens = time.linear > 0 ? room / time.linear : unlimited;
    double const by_squares = time.quadratic > 0 ? std::sqrt(room / time.quadratic) : unlimited;
    return std::min(by_tokens, by_squares) * full_room;
  }

  context_instance const& instance_;
  micro_step_groups& groups_;
  placement_request const request_;
  best_fit_buffers& buffers_;
  /// The inverse of the deadline, and of the capacity.
  double const per_time_;
  double const per_byte_;
};

}  // namespace omnibal::inline v0::detail
