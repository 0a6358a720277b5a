// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The cuts with the least cost for given weights and prices of stages.

#include <omnibal/config.hpp>
#include <omnibal/plan/detail/integer_layers.hpp>
#include <omnibal/plan/stage_chunks/chunk_problem.hpp>
#include <omnibal/plan/stage_chunks/scaled_memory.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace omnibal::inline v0::detail {

/// The weight of the time of each stage and the price of its bytes.
struct stage_prices {
  std::vector<int128> weights;
  std::vector<int128> prices;
};

/// Finds the cuts and choices with the least sum of weighted times and priced bytes, by dynamic
/// programming. Constraints on the number of layers are ignored.
class priced_cuts {
 public:
  static constexpr int128 no_cuts = static_cast<int128>(1) << 126;

  priced_cuts(chunk_problem const& problem, scaled_memory const& memory)
      : problem_(problem), memory_(memory) {}

  /// Finds the best cuts, their loads and their bytes. Returns their cost minus the price of the
  /// memory, or `no_cuts` if there are no cuts.
  [[nodiscard]] int128 run(stage_prices const& given) {
    given_ = &given;
    std::size_t const width = problem_.layers.size() + 1;
    costs_.assign((problem_.virtual_stages() + 1) * width, no_cuts);
    costs_[0] = 0;
    for (std::size_t v = 0; v != problem_.virtual_stages(); ++v) add_virtual_stage(v);
    if (costs_.back() == no_cuts) return no_cuts;
    trace_back();
    int128 cost = costs_.back();
    for (std::size_t s = 0; s != problem_.stages(); ++s) cost -= given.prices[s] * memory_.room(s);
    return cost;
  }

  /// Returns the cuts of the last run.
  [[nodiscard]] std::vector<std::uint32_t> const& boundaries() const { return boundaries_; }
  /// Return the times and the scaled bytes of the stages of the last run.
  [[nodiscard]] std::vector<int128> const& loads() const { return loads_; }
  [[nodiscard]] std::vector<int128> const& used() const { return used_; }
  /// Returns the scaled bytes by which a stage of the last run exceeds its memory.
  [[nodiscard]] int128 excess(std::size_t stage) const {
    return used_[stage] - memory_.room(stage);
  }

 private:
  struct priced_choice {
    int128 cost = no_cuts;
    whole_choice const* choice = nullptr;
  };

  /// Returns the choice of a layer on a virtual stage with the least cost.
  [[nodiscard]] priced_choice cheapest(std::size_t v, std::size_t layer) const {
    std::size_t const stage = problem_.places.stage[v];
    priced_choice least;
    for (auto const& way : problem_.layers[layer]) {
      int128 cost = given_->weights[stage] * way.time;
      if (given_->prices[stage] != 0) cost += given_->prices[stage] * memory_.bytes(v, layer, way);
      if (cost < least.cost) least = {cost, &way};
    }
    return least;
  }

  /// Finds the least cost of the layers before each possible end of virtual stage `v`.
  void add_virtual_stage(std::size_t v) {
    std::size_t const width = problem_.layers.size() + 1;
    int128 const* const before = costs_.data() + v * width;
    int128* const after = costs_.data() + (v + 1) * width;
    // The least cost if virtual stage `v` ends with the layer before `end`.
    int128 open = no_cuts;
    std::size_t const begin = problem_.rules.first_cut[v];
    for (std::size_t end = begin; end <= problem_.rules.last_cut[v + 1]; ++end) {
      if (end != begin) {
        int128 const begun = std::min(open, before[end - 1]);
        open = begun == no_cuts ? no_cuts : begun + cheapest(v, end - 1).cost;
      }
      if (problem_.rules.may_cut[end] == 0 || end < problem_.rules.first_cut[v + 1]) continue;
      after[end] = problem_.rules.may_be_empty ? std::min(open, before[end]) : open;
    }
  }

  void trace_back() {
    std::size_t const width = problem_.layers.size() + 1;
    boundaries_.assign(problem_.virtual_stages() + 1, 0);
    loads_.assign(problem_.stages(), 0);
    used_.assign(problem_.stages(), 0);
    std::size_t end = problem_.layers.size();
    for (std::size_t v = problem_.virtual_stages(); v-- != 0;) {
      boundaries_[v + 1] = static_cast<std::uint32_t>(end);
      int128 cost = costs_[(v + 1) * width + end];
      if (problem_.rules.may_be_empty && costs_[v * width + end] == cost) continue;
      do {
        priced_choice const taken = cheapest(v, --end);
        cost -= taken.cost;
        loads_[problem_.places.stage[v]] += taken.choice->time;
        used_[problem_.places.stage[v]] += memory_.bytes(v, end, *taken.choice);
      } while (costs_[v * width + end] != cost);
    }
  }

  chunk_problem const& problem_;
  scaled_memory const& memory_;
  stage_prices const* given_ = nullptr;
  /// The least costs, by the number of virtual stages and by their end.
  std::vector<int128> costs_;
  std::vector<std::uint32_t> boundaries_;
  std::vector<int128> loads_;
  std::vector<int128> used_;
};

}  // namespace omnibal::inline v0::detail
