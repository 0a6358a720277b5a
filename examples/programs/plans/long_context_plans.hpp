// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Ways of packing and scheduling long and short samples, and what they cost.

#include "dataset.hpp"
#include "heard_profile.hpp"
#include "machine_file.hpp"

#include <omnibal/balance/schedule_steps_options.hpp>
#include <omnibal/cost/layer_cost.hpp>
#include <omnibal/hierarchy/language_profile.hpp>
#include <omnibal/hierarchy/level_metrics.hpp>
#include <omnibal/hierarchy/level_packing.hpp>
#include <omnibal/hierarchy/select_levels.hpp>
#include <omnibal/steps.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace examples {

/// A language model, sharded over all devices. Documents are as long as a token of the mixtures
/// sees in the mean, logits are computed in parts, and a pack waits for the parameters for three
/// tenths of a second.
[[nodiscard]] omnibal::language_profile sharded_profile(omnibal::mixed_language_model const& model,
                                                        machine_description const& machine,
                                                        std::int64_t ranks);

/// What is tried for such a profile: lengths up to 128K, any number of checkpointed layers.
[[nodiscard]] omnibal::level_search level_search_of(omnibal::language_profile const& profile,
                                                    machine_description const& machine);

/// How the samples of a level become packs.
enum class pack_kind {
  as_drawn,       ///< in the order of the data, the next pack where one is full
  by_length,      ///< the same in the order of the lengths
  random_groups,  ///< iterative sampling and filtering
  best_fit,       ///< best-fit decreasing
  first_fit,      ///< in random order, the first pack with room (FFS)
  histogram       ///< by falling length, the pack with the most room (SPFHP)
};

/// Which packs of a level meet in a step.
enum class step_order {
  random,
  by_attention  ///< those with nearly the same attention
};

/// A way of packing and scheduling.
struct level_rule {
  std::string name;
  std::vector<omnibal::packing_level> levels;
  pack_kind packs;
  step_order order;
};

/// An epoch, ready to run.
struct long_context_plan {
  std::string name;
  omnibal::level_packing packed;
  /// One schedule for each level, made with these options.
  std::vector<omnibal::steps> schedules;
  omnibal::schedule_steps_options scheduled;
  omnibal::level_figures figures;
  /// ABR with every step weighed by its time of attention: the waiting of all steps over their
  /// time.
  double weighed_attention_balance = 0;
  /// ABR of each level.
  std::vector<double> level_attention_balance;
  std::size_t step_count = 0;
  /// Of all steps, each as long as its slowest pack.
  double epoch_seconds = 0;
  /// To pack and to schedule.
  double planning_seconds = 0;
  /// The share of attention for which ranks wait, for each step of the levels one after the other.
  std::vector<double> waiting;
};

/// Packs the samples by a rule, schedules them for the ranks of the profile, and measures what
/// comes out.
[[nodiscard]] long_context_plan make_plan(level_rule const& rule, dataset const& data,
                                          heard_profile const& profile, std::uint64_t seed);

/// The documents of a pack. `spans` are the windows and chunks of the model.
[[nodiscard]] omnibal::sequences documents_of(dataset const& data,
                                              omnibal::level_packing const& packed,
                                              std::uint32_t group,
                                              std::span<omnibal::attention_span const> spans = {});

/// The level of each step of the epoch in the order in which `level_sampler` runs them, the first
/// ones of the shortest level. The k-th step of a level is the k-th of its schedule.
[[nodiscard]] std::vector<std::size_t> level_order(long_context_plan const& plan,
                                                   dataset const& data, std::int64_t ranks,
                                                   std::uint64_t short_first_steps);

}  // namespace examples
