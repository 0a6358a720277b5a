// SPDX-License-Identifier: Apache-2.0
#pragma once

// A deferral queue written from its contract, and what must hold of any.

#include <omnibal/context/deferral_queue.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace test {

/// A sample with what it costs, whether it waits or runs.
struct costed_sample {
  std::uint64_t id = 0;
  std::uint64_t step = 0;
  std::int64_t length = 0;
  std::int64_t cost = 0;

  friend bool operator==(costed_sample const&, costed_sample const&) = default;
};

/// True where samples that cost so much keep nobody waiting.
inline bool is_even(std::vector<costed_sample> const& samples,
                    omnibal::deferral_queue_options const& options) {
  __extension__ typedef __int128 wide;
  wide sum = 0;
  wide dearest = 0;
  for (costed_sample const& sample : samples) {
    sum += sample.cost;
    if (sample.length >= options.threshold) dearest = std::max<wide>(dearest, sample.cost);
  }
  return dearest * options.group_size <= sum;
}

/// Tries every set of all that cost no more than one of them.
class naive_deferral {
 public:
  explicit naive_deferral(omnibal::deferral_queue_options const& options) : options_(options) {}

  /// `samples` are those of this step, in order; returns what runs.
  std::vector<costed_sample> push(std::vector<costed_sample> const& samples) {
    waiting_.insert(waiting_.end(), samples.begin(), samples.end());
    bool is_due = false;
    for (costed_sample const& sample : waiting_) {
      is_due = is_due || step_ - sample.step >= options_.max_delay;
    }
    auto runs = up_to(-1);
    for (costed_sample const& dearest : waiting_) {
      if (dearest.length < options_.threshold) continue;
      auto set = up_to(dearest.cost);
      if (set.size() > runs.size() && is_even(set, options_)) runs = std::move(set);
    }
    return leave(is_due ? waiting_ : runs);
  }

  std::vector<costed_sample> flush() {
    return waiting_.empty() ? waiting_ : leave(std::vector(waiting_));
  }

  [[nodiscard]] std::uint64_t step() const { return step_; }
  [[nodiscard]] std::vector<costed_sample> const& waiting() const { return waiting_; }
  void set_group_size(std::uint32_t group_size) { options_.group_size = group_size; }

 private:
  [[nodiscard]] std::vector<costed_sample> up_to(std::int64_t cost) const {
    std::vector<costed_sample> result;
    for (costed_sample const& sample : waiting_) {
      if (sample.cost <= cost || sample.length < options_.threshold) result.push_back(sample);
    }
    return result;
  }

  std::vector<costed_sample> leave(std::vector<costed_sample> runs) {
    std::vector<costed_sample> rest;
    for (costed_sample const& sample : waiting_) {
      if (std::find(runs.begin(), runs.end(), sample) == runs.end()) rest.push_back(sample);
    }
    waiting_ = std::move(rest);
    ++step_;
    return runs;
  }

  omnibal::deferral_queue_options options_;
  std::uint64_t step_ = 0;
  std::vector<costed_sample> waiting_;
};

/// What is wrong with a step beside the one that is expected in step number `step`; empty where
/// nothing is.
inline std::string deferral_fault(omnibal::deferral_step const& made,
                                  std::vector<costed_sample> const& expected, std::uint64_t step) {
  if (made.ids.size() != expected.size()) return "another number of samples";
  if (made.lengths.size() != expected.size()) return "another number of lengths";
  if (made.delays.size() != expected.size()) return "another number of delays";
  if (static_cast<bool>(made) == expected.empty()) return "a wrong answer whether samples run";
  for (std::size_t i = 0; i != expected.size(); ++i) {
    if (made.ids[i] != expected[i].id) return "another id";
    if (made.lengths[i] != expected[i].length) return "another length";
    if (made.delays[i] != step - expected[i].step) return "another delay";
  }
  return {};
}

/// What is wrong with the samples that wait; empty where nothing is.
inline std::string waiting_fault(omnibal::deferral_state const& state,
                                 naive_deferral const& expected) {
  if (state.step != expected.step()) return "another number of steps";
  if (state.waiting.size() != expected.waiting().size()) return "another number of samples waits";
  for (std::size_t i = 0; i != state.waiting.size(); ++i) {
    costed_sample const& sample = expected.waiting()[i];
    if (!(state.waiting[i] == omnibal::deferred_sample{sample.id, sample.step, sample.length})) {
      return "another sample waits";
    }
  }
  return {};
}

}  // namespace test
