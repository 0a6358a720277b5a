// SPDX-License-Identifier: Apache-2.0
#pragma once

// The samplers of all ranks, run together.

#include <omnibal/sample/epoch.hpp>
#include <omnibal/sample/epoch_sampler.hpp>
#include <omnibal/sample/step_sampler.hpp>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <catch.hpp>

namespace test {

/// What one rank takes in a step, repetitions apart.
struct taken {
  std::vector<std::uint64_t> new_ones;
  std::vector<std::uint64_t> repeated;

  friend bool operator==(taken const&, taken const&) = default;
};

/// What all ranks take in a step.
using fleet_step = std::vector<taken>;

inline taken next_of(omnibal::epoch_sampler& sampler) {
  auto const batch = sampler.next();
  std::size_t const new_ones = batch.size() - batch.repeated();
  taken result;
  for (std::size_t i = 0; i != batch.size(); ++i) {
    (i < new_ones ? result.new_ones : result.repeated).push_back(batch[i]);
  }
  return result;
}

template <class Load, class Scheduler>
taken next_of(omnibal::step_sampler<Load, Scheduler>& sampler) {
  auto const groups = sampler.next();
  taken result;
  auto& kind = sampler.is_repeat() ? result.repeated : result.new_ones;
  kind.assign(groups.begin(), groups.end());
  return result;
}

/// One sampler for each rank.
template <class Sampler>
class fleet {
 public:
  /// `make(shard)` gives the sampler of a rank.
  template <class Make>
  fleet(std::size_t ranks, Make const& make) {
    for (std::size_t rank = 0; rank != ranks; ++rank) samplers_.push_back(make({ranks, rank}));
  }

  /// Runs a step; all ranks must be in the same place.
  fleet_step next() {
    fleet_step result;
    for (Sampler& sampler : samplers_) result.push_back(next_of(sampler));
    check();
    return result;
  }

  void check() const {
    for (Sampler const& sampler : samplers_) {
      REQUIRE(sampler.state() == first().state());
      REQUIRE(sampler.step() == first().step());
      REQUIRE(sampler.step_count() == first().step_count());
      REQUIRE(sampler.left_over() == first().left_over());
      REQUIRE(sampler.done() == (sampler.step() == sampler.step_count()));
    }
  }

  [[nodiscard]] Sampler const& first() const { return samplers_.front(); }
  [[nodiscard]] bool done() const { return first().done(); }
  [[nodiscard]] std::uint64_t epoch() const { return first().epoch(); }
  [[nodiscard]] omnibal::sampler_state state() const { return first().state(); }

 private:
  std::vector<Sampler> samplers_;
};

template <class Make>
fleet(std::size_t, Make const&) -> fleet<decltype(std::declval<Make>()(omnibal::shard{}))>;

/// How often each of `size` samples or groups has run, repetitions apart.
class run_counts {
 public:
  explicit run_counts(std::size_t size) : counts_(size, 0) {}

  void add(fleet_step const& step) {
    for (taken const& of_rank : step) {
      for (std::uint64_t const index : of_rank.new_ones) ++counts_.at(index);
    }
  }

  /// True where each has run `times` times.
  [[nodiscard]] bool all_are(std::size_t times) const {
    for (std::size_t const count : counts_) {
      if (count != times) return false;
    }
    return true;
  }

  [[nodiscard]] std::size_t operator[](std::size_t index) const { return counts_[index]; }
  [[nodiscard]] std::size_t sum() const {
    std::size_t result = 0;
    for (std::size_t const count : counts_) result += count;
    return result;
  }

 private:
  std::vector<std::size_t> counts_;
};

/// Runs the epoch to its end.
template <class Fleet>
void finish_epoch(Fleet& ranks, run_counts& counts) {
  while (!ranks.done()) counts.add(ranks.next());
}

}  // namespace test
