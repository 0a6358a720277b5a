#pragma once

/// \file
/// Trying capacities: many on a part of the samples, the best on more, the last few on all.

#include <omnibal/check.hpp>
#include <omnibal/detail/each_once.hpp>
#include <omnibal/group_loads.hpp>
#include <omnibal/pack/objective.hpp>
#include <omnibal/pack/packing.hpp>
#include <omnibal/pack/tune_capacity/capacity_grid.hpp>
#include <omnibal/pack/tune_capacity_options.hpp>
#include <omnibal/resources.hpp>
#include <omnibal/rng/fisher_yates.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace omnibal::inline v0::detail {

template <std::size_t R, class T, class Packer, class Objective>
class capacity_search {
 public:
  using demands_type = std::span<resources<R, T> const>;

  /// The arguments must outlive this object. Precondition: there are demands.
  capacity_search(demands_type demands, double target, Packer const& packer,
                  Objective const& objective, tune_capacity_options<R, T> const& options,
                  capacity_grid<R, T> const& grid)
      : demands_(demands),
        target_(target),
        grid_(grid),
        packer_(packer),
        objective_(objective),
        options_(options) {}

  /// Tries the capacities of the grid and what lies between the best of them.
  void run(tuned<R, T>& result) {
    std::size_t count = first_count();
    auto const part = part_of(count);
    double const tolerance = count == demands_.size() ? 0.0 : sampling_error;
    for (auto const& capacity : grid_.capacities()) try_on(part, capacity, tolerance);
    rank();
    refine(part, tolerance);
    while (count != demands_.size()) {
      // Not on nearly all samples and then on all.
      bool const is_last = count >= demands_.size() / (2 * growth);
      count = is_last ? demands_.size() : count * growth;
      narrow(count);
    }
    for (trial const& tried : trials_) result.finalists.push_back(tried.judged);
    result.best = result.finalists.front();
    result.status = trials_.front().miss > 0.0 ? solve_status::not_found : solve_status::solved;
    result.packings = packings_;
  }

 private:
  struct trial {
    tuned_capacity<R, T> judged;
    /// The least capacity of the grid that holds every group.
    resources<R, T> tight;
    /// How far it is from what is accepted, beyond the tolerance.
    double miss;
    /// Without any tolerance.
    bool wanted;
  };

  static constexpr std::size_t growth = 4;
  /// A larger part is for one in so many of the capacities that were tried on the smaller one.
  static constexpr std::size_t selection = 8;
  /// So many times the finalists are tried on all samples where none is accepted.
  static constexpr std::size_t most_tries = 4;
  static constexpr std::size_t most_halvings = 8;
  /// By so much, relatively, a group size on a part may miss the target.
  static constexpr double sampling_error = 0.02;
  /// A part should be enough for so many groups.
  static constexpr double groups_of_part = 256.0;

  [[nodiscard]] std::size_t first_count() const {
    double const wanted = std::max(static_cast<double>(options_.first_samples),
                                   groups_of_part * (target_ + options_.width));
    auto const all = static_cast<double>(demands_.size());
    return wanted < all ? static_cast<std::size_t>(wanted) : demands_.size();
  }

  /// `count` samples chosen at random, in their order; a larger part includes the smaller ones.
  [[nodiscard]] demands_type part_of(std::size_t count) {
    if (count == demands_.size()) return demands_;
    if (order_.empty()) {
      order_.resize(demands_.size());
      std::iota(order_.begin(), order_.end(), std::uint32_t{0});
      rng::fisher_yates{options_.seed}(std::span(order_), 0);
    }
    std::span<std::uint32_t> const chosen = std::span(order_).first(count);
    std::sort(chosen.begin(), chosen.end());
    part_.resize(count);
    for (std::size_t i = 0; i != count; ++i) part_[i] = demands_[chosen[i]];
    return part_;
  }

  /// Between the best capacities, ever closer to each.
  void refine(demands_type part, double tolerance) {
    if (grid_.is_complete()) return;
    for (std::size_t halvings = 1; halvings <= most_halvings; ++halvings) {
      std::vector<resources<R, T>> next;
      for (trial const& centre : best_different(options_.finalists)) {
        auto around = grid_.around(centre.judged.capacity, halvings);
        around.push_back(centre.tight);
        for (auto const& capacity : around) {
          if (!is_tried(capacity) && std::find(next.begin(), next.end(), capacity) == next.end()) {
            next.push_back(capacity);
          }
        }
      }
      for (auto const& capacity : next) try_on(part, capacity, tolerance);
      rank();
    }
  }

  /// Tries the best capacities on `count` samples and forgets the others. On all samples it goes on
  /// until a capacity is accepted.
  void narrow(std::size_t count) {
    bool const is_last = count == demands_.size();
    demands_type const part = part_of(count);
    std::size_t const kept =
        is_last ? options_.finalists : std::max(options_.finalists, trials_.size() / selection);
    std::vector<trial> const ranked = best_different(is_last ? most_tries * kept : kept);
    trials_.clear();
    bool accepted = false;
    for (std::size_t k = 0; k != ranked.size() && (k < kept || !accepted); ++k) {
      try_on(part, ranked[k].judged.capacity, is_last ? 0.0 : sampling_error);
      accepted = accepted || !(trials_.back().miss > 0.0);
    }
    rank();
  }

  /// The best trials, at most `count`: in turn one whose group size is as wanted and any one, as on
  /// a part of the samples a size just outside may be due to chance, or not. Of those that led to
  /// the same groups only the one with the smallest capacity.
  [[nodiscard]] std::vector<trial> best_different(std::size_t count) const {
    std::vector<trial> result;
    std::size_t next[] = {0, 0};
    auto const is_new = [&](trial const& candidate) {
      return std::none_of(result.begin(), result.end(), [&](trial const& taken) {
        return taken.judged.groups == candidate.judged.groups &&
               taken.judged.objective == candidate.judged.objective;
      });
    };
    for (bool wanted = true; result.size() != count; wanted = !wanted) {
      std::size_t& k = next[wanted ? 0 : 1];
      while (k != trials_.size() && ((wanted && !trials_[k].wanted) || !is_new(trials_[k]))) ++k;
      if (k != trials_.size()) {
        result.push_back(trials_[k]);
      } else if (!wanted) {
        break;
      }
    }
    return result;
  }

  [[nodiscard]] bool is_tried(resources<R, T> const& capacity) const {
    return std::any_of(trials_.begin(), trials_.end(),
                       [&](trial const& tried) { return tried.judged.capacity == capacity; });
  }

  void try_on(demands_type part, resources<R, T> const& capacity, double tolerance) {
    ++packings_;
    packing const packed = packer_(part, std::identity{}, capacity);
    tuned_capacity<R, T> judged{
        .capacity = capacity, .groups = packed.groups.size(), .oversized = packed.oversized.size()};
    std::size_t const placed = packed.groups.item_count();
    each_once named(name, "the packer", "samples", part.size());
    named.take(packed.groups.items());
    named.take(packed.oversized);
    named.finish();
    auto tight = capacity;
    judged.objective = std::numeric_limits<double>::infinity();
    if (judged.groups != 0) {
      auto const loads = group_loads(packed.groups, part, std::identity{});
      judged.mean_group_size = static_cast<double>(placed) / static_cast<double>(judged.groups);
      judged.fill = fill_of<R, T>(loads, capacity);
      judged.objective = value_of({capacity, part, packed.groups.view(), loads});
      tight = grid_.tightened(capacity, loads);
    }
    trials_.push_back({judged, tight, miss_of(judged, part.size(), tolerance),
                       !(miss_of(judged, part.size(), 0.0) > 0.0)});
  }

  [[nodiscard]] double value_of(packed_samples<R, T> const& packed) const {
    auto const value = static_cast<double>(std::invoke(objective_, packed));
    if (std::isfinite(value)) return value;
    std::string text = "objective is " + to_text(value) + " for the capacity";
    for (T const amount : packed.capacity.amounts) text += " " + to_text(amount);
    throw_invalid(name, text + ", must be finite");
  }

  /// How far, relatively, a group size and the oversized samples are from what is accepted. Without
  /// a product that a compiler could fuse with a sum, so portable.
  [[nodiscard]] double miss_of(tuned_capacity<R, T> const& judged, std::size_t samples,
                               double tolerance) const {
    double const too_small = 1.0 - judged.mean_group_size / target_;
    double const too_large = judged.mean_group_size / (target_ + options_.width) - 1.0;
    double const left_out = static_cast<double>(judged.oversized) / static_cast<double>(samples) -
                            options_.most_oversized;
    double sum = 0.0;
    for (double const excess : {too_small, too_large, left_out}) {
      sum += std::max(0.0, excess - tolerance);
    }
    return sum;
  }

  /// The best first; of equally good ones that with the smaller capacities.
  void rank() {
    std::sort(trials_.begin(), trials_.end(), [](trial const& left, trial const& right) {
      if (left.miss != right.miss) return left.miss < right.miss;
      if (left.judged.objective != right.judged.objective) {
        return left.judged.objective < right.judged.objective;
      }
      return std::lexicographical_compare(
          std::begin(left.judged.capacity.amounts), std::end(left.judged.capacity.amounts),
          std::begin(right.judged.capacity.amounts), std::end(right.judged.capacity.amounts));
    });
  }

  static constexpr std::string_view name = "tune_capacity";

  demands_type demands_;
  double target_;
  capacity_grid<R, T> const& grid_;
  Packer const& packer_;
  Objective const& objective_;
  tune_capacity_options<R, T> const& options_;
  std::size_t packings_ = 0;
  /// The best first, but for those that were tried since.
  std::vector<trial> trials_;
  std::vector<std::uint32_t> order_;
  std::vector<resources<R, T>> part_;
};

}  // namespace omnibal::inline v0::detail
