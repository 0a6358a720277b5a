// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Places the operations of an encoder in the idle times of a pipeline whose operations keep their
/// times.

#include <omnibal/pipeline/detail/encoder_problem.hpp>
#include <omnibal/pipeline/encoder_work.hpp>
#include <omnibal/pipeline/schedule.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace omnibal::inline v0::detail {

/// The order in which micro-batches are placed, and the choice among devices that result in equally
/// long steps.
struct gap_rule {
  bool from_last = false;
  /// If true, the device with the least work is chosen; otherwise, the device with the latest
  /// forward pass.
  bool prefers_idle = false;
};

/// The operations of a device at fixed times.
template <class T>
class busy_times {
 public:
  struct entry {
    T begin{};
    T end{};
    placed_operation operation{};
  };

  /// Appends an operation after all others.
  void append(T begin, T end, placed_operation const& operation) {
    entries_.push_back({begin, end, operation});
    work_ += end - begin;
  }

  /// Returns the latest begin of an operation of duration `time` that ends at `deadline` or before.
  [[nodiscard]] T latest(T deadline, T time) const {
    for (std::size_t i = entries_.size(); i-- != 0;) {
      T const begin = std::min(deadline, begin_after(i)) - time;
      if (begin >= entries_[i].end) return begin;
      deadline = std::min(deadline, entries_[i].begin);
    }
    return deadline - time;
  }

  /// Returns the earliest begin of an operation of duration `time` that begins at `release` or
  /// later.
  [[nodiscard]] T earliest(T release, T time) const {
    for (entry const& one : entries_) {
      if (release + time <= one.begin) return release;
      release = std::max(release, one.end);
    }
    return release;
  }

  /// Inserts an operation into a gap. Among operations at equal times, forward passes come first
  /// and backward passes last, so that no operation waits for a later operation of its list.
  void insert(T begin, T time, placed_operation const& operation) {
    T const end = begin + time;
    bool const is_forward = operation.kind == operation_kind::forward;
    auto const after = std::ranges::find_if(entries_, [&](entry const& one) {
      return is_forward ? one.begin >= end : one.end > begin;
    });
    entries_.insert(after, {begin, end, operation});
    work_ += time;
  }

  [[nodiscard]] T work() const { return work_; }
  [[nodiscard]] std::vector<placed_operation> operations() const {
    std::vector<placed_operation> result;
    for (entry const& one : entries_) result.push_back(one.operation);
    return result;
  }

 private:
  [[nodiscard]] T begin_after(std::size_t index) const {
    return index + 1 == entries_.size() ? std::numeric_limits<T>::max() : entries_[index + 1].begin;
  }

  std::vector<entry> entries_;
  T work_{};
};

/// Places the pieces of an encoder one after the other around the operations of the language model,
/// whose times do not change. A forward pass is placed as late as possible, a backward pass as
/// early as possible. Passes that do not fit into gaps are placed before or after the step of the
/// language model. Each piece is placed on the device that lengthens the step least.
template <class T>
class gap_placement {
 public:
  gap_placement(encoder_problem<T> const& problem, std::vector<std::uint32_t> const& order,
                gap_rule const& rule)
      : problem_(problem),
        order_(order),
        rule_(rule),
        devices_(problem.devices),
        last_(problem.language_makespan),
        begins_(problem.stage_of.size()),
        ends_(problem.stage_of.size()) {
    for (std::size_t s = 0; s != problem.stages; ++s) {
      for (language_operation<T> const& one : problem.language[s]) {
        std::size_t const unit = problem.unit(one.virtual_stage, one.micro_batch);
        T const end = one.begin + one.time;
        if (one.kind == operation_kind::forward) begins_[unit] = one.begin;
        if (one.kind == operation_kind::backward) ends_[unit] = end;
        devices_[s].append(one.begin, end,
                           {model_part::language, one.kind, one.chunk, one.micro_batch});
      }
    }
  }

  [[nodiscard]] placed_lists run() {
    for (std::size_t k = 0; k != order_.size(); ++k) {
      std::uint32_t const m = order_[rule_.from_last ? order_.size() - 1 - k : k];
      for (std::uint32_t j = 0; j != problem_.pieces; ++j) place(m, j);
    }
    placed_lists lists;
    for (auto const& one : devices_) lists.push_back(one.operations());
    return lists;
  }

 private:
  struct candidate {
    std::uint32_t device = 0;
    /// The time by which the step becomes longer.
    T longer{};
    T forward{};
    T backward{};
  };

  void place(std::uint32_t m, std::uint32_t piece) {
    auto const& work = problem_.work[problem_.piece(m, piece)];
    candidate best;
    bool is_first = true;
    for (std::uint32_t const d : problem_.encoder_devices) {
      candidate const one = candidate_on(d, m, work);
      if (!is_first && !is_better(one, best)) continue;
      best = one;
      is_first = false;
    }
    devices_[best.device].insert(best.forward, work.forward,
                                 {model_part::encoder, operation_kind::forward, piece, m});
    devices_[best.device].insert(best.backward, work.backward,
                                 {model_part::encoder, operation_kind::backward, piece, m});
    first_ = std::min(first_, best.forward);
    last_ = std::max(last_, best.backward + work.backward);
  }

  [[nodiscard]] bool is_better(candidate const& one, candidate const& best) const {
    if (one.longer != best.longer) return one.longer < best.longer;
    if (!rule_.prefers_idle) return one.forward > best.forward;
    return devices_[one.device].work() < devices_[best.device].work();
  }

  [[nodiscard]] candidate candidate_on(std::uint32_t device, std::uint32_t m,
                                       encoder_piece<T> const& work) const {
    T deadline = std::numeric_limits<T>::max();
    T release{};
    for (std::uint32_t const reader : problem_.readers) {
      std::size_t const unit = problem_.unit(reader, m);
      bool const is_here = problem_.stage_of[unit] == device;
      deadline = std::min(deadline, begins_[unit] - (is_here ? T{} : work.transfer.forward));
      release = std::max(release, ends_[unit] + (is_here ? T{} : work.transfer.backward));
    }
    candidate result{.device = device};
    result.forward = devices_[device].latest(deadline, work.forward);
    result.backward = devices_[device].earliest(release, work.backward);
    result.longer = std::max(T{}, first_ - result.forward) +
                    std::max(T{}, result.backward + work.backward - last_);
    return result;
  }

  encoder_problem<T> const& problem_;
  std::vector<std::uint32_t> const& order_;
  gap_rule rule_;
  std::vector<busy_times<T>> devices_;
  /// The begin and the end of the step; the language model begins at time zero.
  T first_{};
  T last_;
  /// The begin of the forward pass and the end of the backward pass, by virtual stage and
  /// micro-batch.
  std::vector<T> begins_;
  std::vector<T> ends_;
};

}  // namespace omnibal::inline v0::detail
