#pragma once

/// \file
/// What cheap figures say about cuts.

#include <omnibal/check.hpp>
#include <omnibal/detail/prefix_sums.hpp>
#include <omnibal/partition/detail/stage_costs.hpp>
#include <omnibal/partition/partition_layers_options.hpp>

#include <cstddef>
#include <functional>
#include <string_view>
#include <vector>

namespace omnibal::inline v0 {

/// What a unit of variance, and a unit of traffic, is worth.
struct cut_weights {
  double variance = 1.0;
  double traffic = 1.0;
};

/// OmniBal's score of cuts: the variance of the stages' times and the traffic at the cuts, with the
/// user's weights; the less the better. Called with a stage it gives its part of the score, so that
/// the best of very many cuts can be found without trying all.
///
/// Determinism: run-to-run. Source: Yao et al., OmniBal, ICML 2025.
class cut_score {
 public:
  /// `seconds` has the forward time of each layer, `traffic` what each layer sends to the next; the
  /// last layer sends nothing, whatever the list says.
  ///
  /// Errors: `std::invalid_argument` for no stages, lists of different lengths, a value that is
  /// negative or not finite; `std::overflow_error` where the sum of the times leaves its type.
  cut_score(weight_list<double> const& seconds, weight_list<double> const& traffic,
            std::size_t stages, cut_weights const& weights = {})
      : traffic_(traffic.values().begin(), traffic.values().end()) {
    detail::check_weight(name, "weights.variance", weights.variance);
    detail::check_weight(name, "weights.traffic", weights.traffic);
    detail::check_stages(name, seconds.values().size(), stages, empty_stages::allowed);
    detail::check_size(name, "traffic", traffic_.size(), seconds.values().size(), "layers");
    detail::sum_costs(name, seconds.values(), std::identity{}, sums_,
                      {"seconds", "the sum of the seconds"});
    for (std::size_t l = 0; l != traffic_.size(); ++l) {
      detail::check_weight(name, "traffic", l, traffic_[l]);
      traffic_[l] *= weights.traffic;
    }
    mean_ = sums_.back() / static_cast<double>(stages);
    variance_weight_ = weights.variance / static_cast<double>(stages);
  }

  /// The part of a stage: its square distance from the mean, and what it sends.
  [[nodiscard]] double operator()(std::size_t, std::size_t first, std::size_t last) const {
    double const distance = sums_[last] - sums_[first] - mean_;
    double const sent = last == traffic_.size() || last == first ? 0.0 : traffic_[last - 1];
    return variance_weight_ * distance * distance + sent;
  }

 private:
  static constexpr std::string_view name = "cut_score";

  std::vector<double> sums_;
  std::vector<double> traffic_;
  double mean_ = 0.0;
  double variance_weight_ = 0.0;
};

}  // namespace omnibal::inline v0
