// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// A lower bound of the time of all placements of an encoder in a pipeline.

#include <omnibal/pipeline/detail/encoder_problem.hpp>
#include <omnibal/pipeline/detail/run_lists.hpp>
#include <omnibal/pipeline/schedule.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace omnibal::inline v0::detail {

/// The lower bound for a language model whose operations keep their order. Before the forward pass
/// of a reader, the encoder has finished this micro-batch and all earlier micro-batches of the
/// reader, and all operations that the reader depends on have run. The devices of the encoder share
/// this work, which delays the reader. After the backward pass of a reader the same holds for this
/// micro-batch and all later ones. The bound is the largest end of the delayed language model plus
/// the work that remains.
template <class T>
class encoder_bound {
 public:
  explicit encoder_bound(encoder_problem<T> const& problem)
      : problem_(problem),
        prefix_work_(problem.stages),
        earlier_(problem.stages),
        later_(problem.stages),
        ends_(problem.stages),
        batch_work_(problem.batches) {
    for (std::size_t s = 0; s != problem.stages; ++s) {
      std::size_t const count = problem.language[s].size();
      prefix_work_[s].assign(count + 1, T{});
      for (std::size_t i = 0; i != count; ++i) {
        prefix_work_[s][i + 1] = prefix_work_[s][i] + problem.language[s][i].time;
      }
      earlier_[s].resize(count);
      later_[s].resize(count);
      ends_[s].assign(count, T{});
    }
    for (std::size_t q = 0; q != problem.work.size(); ++q) {
      batch& one = batch_work_[q / problem.pieces];
      encoder_piece<T> const& piece = problem.work[q];
      one.forward += piece.forward;
      one.backward += piece.backward;
      one.longest_forward = std::max(one.longest_forward, piece.forward);
      one.longest_backward = std::max(one.longest_backward, piece.backward);
      // The transfer of the last piece is the shortest one.
      one.transfer = piece.transfer;
    }
    order_operations();
    run_delayed();
  }

  /// Returns the lower bound.
  [[nodiscard]] T value() const {
    T all{};
    for (std::uint32_t const d : problem_.encoder_devices) {
      if (d < problem_.stages) all += prefix_work_[d].back();
    }
    for (batch const& one : batch_work_) all += one.forward + one.backward;
    T bound = shared(all);
    for (std::size_t s = 0; s != problem_.stages; ++s) {
      if (!ends_[s].empty()) bound = std::max(bound, ends_[s].back());
      bound = std::max(bound, longest_tail(s));
    }
    return bound;
  }

 private:
  /// The work of the encoder on a micro-batch: sums and maxima over the pieces.
  struct batch {
    T forward{};
    T backward{};
    T longest_forward{};
    T longest_backward{};
    transfer_time<T> transfer{};
  };
  /// The place of an operation of the language model: a stage, and an index in the list of the
  /// stage.
  struct position {
    std::uint32_t stage = 0;
    std::uint32_t index = 0;
  };
  /// A number of operations for each stage: the first ones or the last ones of its list.
  using counts = std::vector<std::uint32_t>;

  /// Returns a lower bound of the time in which the devices of the encoder finish `work` together.
  [[nodiscard]] T shared(T work) const {
    auto const count = static_cast<T>(problem_.encoder_devices.size());
    if constexpr (std::integral<T>) {
      return work / count + (work % count == 0 ? 0 : 1);
    } else {
      return work / count * (1 - 1e-12);
    }
  }

  /// Finds an order in which each operation follows the operations that it depends on. Counts the
  /// operations before and after each operation.
  void order_operations() {
    std::size_t const units = problem_.stage_of.size();
    positions_.assign(2 * units, position{});
    for (std::uint32_t s = 0; s != problem_.stages; ++s) {
      for (std::uint32_t i = 0; i != problem_.language[s].size(); ++i) {
        auto const& one = problem_.language[s][i];
        if (one.kind == operation_kind::weight) continue;
        positions_[pass(one.kind, problem_.unit(one.virtual_stage, one.micro_batch))] = {s, i};
      }
    }
    std::vector<bool> has_run(2 * units, false);
    static_cast<void>(run_lists(problem_.language, [&](std::size_t s, std::size_t i) {
      auto const& one = problem_.language[s][i];
      auto const needed = needed_pass(one);
      if (needed && !has_run[*needed]) return run_outcome::waits;
      if (one.kind != operation_kind::weight) {
        has_run[pass(one.kind, problem_.unit(one.virtual_stage, one.micro_batch))] = true;
      }
      order_.push_back({static_cast<std::uint32_t>(s), static_cast<std::uint32_t>(i)});
      return run_outcome::ran;
    }));
    for (position const& at : order_) collect_earlier(at);
    for (std::size_t i = order_.size(); i-- != 0;) collect_later(order_[i]);
  }

  /// Returns the index of a pass: forward passes come first, then backward passes.
  [[nodiscard]] std::size_t pass(operation_kind kind, std::size_t unit) const {
    return kind == operation_kind::forward ? unit : problem_.stage_of.size() + unit;
  }
  /// Returns the index of the pass whose result an operation reads, or no value if there is none.
  [[nodiscard]] std::optional<std::size_t> needed_pass(language_operation<T> const& one) const {
    if (one.kind == operation_kind::weight) return {};
    pass_chain const passes{problem_.virtual_stages};
    auto const before = passes.before(chain_pass{one.kind, one.virtual_stage});
    if (!before) return {};
    return pass(before->kind, problem_.unit(before->virtual_stage, one.micro_batch));
  }

  static void merge(counts& into, counts const& other) {
    for (std::size_t s = 0; s != into.size(); ++s) into[s] = std::max(into[s], other[s]);
  }
  /// Counts the operations of each list that end before an operation begins. The counts of the
  /// operation that it needs, and of the previous operation of its list, are already known.
  void collect_earlier(position const& at) {
    counts& here = earlier_[at.stage][at.index];
    here.assign(problem_.stages, 0);
    if (at.index != 0) merge(here, earlier_[at.stage][at.index - 1]);
    here[at.stage] = at.index;
    auto const needed = needed_pass(problem_.language[at.stage][at.index]);
    if (!needed) return;
    position const& before = positions_[*needed];
    merge(here, earlier_[before.stage][before.index]);
    here[before.stage] = std::max(here[before.stage], before.index + 1);
  }
  /// Counts the operations of each list that begin after an operation ends. Merges these counts
  /// into the counts of the operation that it needs.
  void collect_later(position const& at) {
    counts& here = later_[at.stage][at.index];
    if (here.empty()) here.assign(problem_.stages, 0);
    auto const count = static_cast<std::uint32_t>(problem_.language[at.stage].size());
    if (at.index + 1 != count) merge(here, later_[at.stage][at.index + 1]);
    here[at.stage] = count - 1 - at.index;
    auto const needed = needed_pass(problem_.language[at.stage][at.index]);
    if (!needed) return;
    position const& before = positions_[*needed];
    counts& there = later_[before.stage][before.index];
    if (there.empty()) there.assign(problem_.stages, 0);
    merge(there, here);
    there[at.stage] = std::max(there[at.stage], count - at.index);
  }

  /// Returns the total time of the first operations in the lists of the devices that run the
  /// encoder; `numbers` has their number for each list.
  [[nodiscard]] T work_before(counts const& numbers) const {
    T sum{};
    for (std::uint32_t const d : problem_.encoder_devices) {
      if (d < problem_.stages) sum += prefix_work_[d][numbers[d]];
    }
    return sum;
  }
  /// Returns the total time of the last operations in the lists of the devices that run the
  /// encoder; `numbers` has their number for each list.
  [[nodiscard]] T work_after(counts const& numbers) const {
    T sum{};
    for (std::uint32_t const d : problem_.encoder_devices) {
      if (d >= problem_.stages) continue;
      auto const& work = prefix_work_[d];
      sum += work.back() - work[work.size() - 1 - numbers[d]];
    }
    return sum;
  }

  [[nodiscard]] bool is_reader(std::size_t virtual_stage) const {
    return std::ranges::find(problem_.readers, virtual_stage) != problem_.readers.end();
  }

  /// Simulates the language model; each reader begins no earlier than the encoder can finish the
  /// work before it.
  void run_delayed() {
    // The work of the encoder before a reader, by virtual stage and stage.
    std::vector<T> encoded(problem_.virtual_stages * problem_.stages, T{});
    for (position const& at : order_) {
      auto const& one = problem_.language[at.stage][at.index];
      T begin = at.index == 0 ? T{} : ends_[at.stage][at.index - 1];
      if (auto const needed = needed_pass(one)) {
        position const& before = positions_[*needed];
        begin = std::max(begin, ends_[before.stage][before.index] + transfer_to(one));
      }
      if (one.kind == operation_kind::forward && is_reader(one.virtual_stage)) {
        batch const& work = batch_work_[one.micro_batch];
        T& sum = encoded[one.virtual_stage * problem_.stages + at.stage];
        sum += work.forward;
        bool const is_here = problem_.is_encoder_device(at.stage);
        begin = std::max(begin, shared(sum + work_before(earlier_[at.stage][at.index])));
        begin = std::max(begin, work.longest_forward + (is_here ? T{} : work.transfer.forward));
      }
      ends_[at.stage][at.index] = begin + one.time;
    }
  }
  /// Returns the time of the transfer of the input of a pass.
  [[nodiscard]] T transfer_to(language_operation<T> const& one) const {
    std::size_t const v = one.virtual_stage;
    if (one.kind == operation_kind::forward) {
      return problem_.transfers[problem_.unit(v - 1, one.micro_batch)].forward;
    }
    // There is no cut after the last virtual stage, and the transfer there is zero.
    return problem_.transfers[problem_.unit(v, one.micro_batch)].backward;
  }

  /// Returns the largest sum of the end of a backward pass of a reader on a stage and of the work
  /// that remains then.
  [[nodiscard]] T longest_tail(std::size_t stage) const {
    T longest{};
    std::vector<T> encoded(problem_.virtual_stages, T{});
    auto const& list = problem_.language[stage];
    bool const is_here = problem_.is_encoder_device(stage);
    for (std::size_t i = list.size(); i-- != 0;) {
      auto const& one = list[i];
      if (one.kind != operation_kind::backward || !is_reader(one.virtual_stage)) continue;
      batch const& work = batch_work_[one.micro_batch];
      T& sum = encoded[one.virtual_stage];
      sum += work.backward;
      T const single = work.longest_backward + (is_here ? T{} : work.transfer.backward);
      T const left = std::max(single, shared(sum + work_after(later_[stage][i])));
      longest = std::max(longest, ends_[stage][i] + left);
    }
    return longest;
  }

  encoder_problem<T> const& problem_;
  /// The total time of the first operations of each list, by their number.
  std::vector<std::vector<T>> prefix_work_;
  /// For each operation, the numbers of operations of each list that end before it, and that begin
  /// after it.
  std::vector<std::vector<counts>> earlier_;
  std::vector<std::vector<counts>> later_;
  std::vector<std::vector<T>> ends_;
  /// The work of the encoder on each micro-batch.
  std::vector<batch> batch_work_;
  /// The place of the operation of each pass.
  std::vector<position> positions_;
  std::vector<position> order_;
};

}  // namespace omnibal::inline v0::detail
