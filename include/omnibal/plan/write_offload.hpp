// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Output of plans with offloaded activations for trainers: lists, JSON, the flags of Megatron-LM,
/// checkpoint policies of PyTorch.

#include <omnibal/check.hpp>
#include <omnibal/detail/put_text.hpp>
#include <omnibal/grouping.hpp>
#include <omnibal/plan/offload_plan.hpp>
#include <omnibal/recompute/activation_layer.hpp>
#include <omnibal/solve_status.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace omnibal::inline v0 {

namespace detail {

/// Throws unless the boundaries of a plan begin with zero, never descend, and end with the number
/// of layers that have choices.
inline void check_offload_plan(std::string_view function, offload_plan const& plan) {
  std::uint32_t before = 0;
  for (std::size_t s = 0; s != plan.boundaries.size(); ++s) {
    std::uint32_t const now = plan.boundaries[s];
    if (now < before || (s == 0 && now != 0)) {
      throw_invalid(function, "plan.boundaries[", s, "] is ", now, ", must be ",
                    s == 0 ? "" : "at least ", before);
    }
    before = now;
  }
  if (plan.choices.size() == before) return;
  throw_invalid(function, "the plan has ", plan.choices.size(),
                " choices, its boundaries end with ", before);
}

/// Throws unless each layer of a plan has one module for each name.
inline void check_module_names(std::string_view function, offload_plan const& plan,
                               std::span<std::string_view const> names) {
  for (std::size_t l = 0; l != plan.choices.size(); ++l) {
    check_size(function, joined_text("plan.choices[", l, "]"), plan.choices[l].size(), names.size(),
               "names");
  }
}

[[nodiscard]] constexpr std::string_view name_of(activation_choice choice) {
  constexpr std::string_view names[]{"keep", "recompute", "offload"};
  return names[static_cast<std::size_t>(choice)];
}

}  // namespace detail

struct activation_lists_fn {
  /// Returns, for each stage of a plan, the layers whose module number `module` has the choice
  /// `choice`, in order. Trainers that list the layers to recompute or offload accept such lists.
  /// Layers are numbered over the whole model. Layers without this module are in no list. If the
  /// plan is infeasible, the result has no stages.
  ///
  /// Complexity: linear. Memory: the result. Determinism: portable. Errors: `std::invalid_argument`
  /// if boundaries do not begin with zero, descend, or do not end with the number of choices.
  [[nodiscard]] grouping operator()(offload_plan const& plan, std::size_t module,
                                    activation_choice choice) const {
    detail::check_offload_plan("activation_lists", plan);
    grouping result;
    for (std::size_t s = 0; s + 1 < plan.boundaries.size(); ++s) {
      for (std::uint32_t l = plan.boundaries[s]; l != plan.boundaries[s + 1]; ++l) {
        auto const& row = plan.choices[l];
        if (module < row.size() && row[module] == choice) result.push(l);
      }
      result.close();
    }
    return result;
  }
};

/// Returns the layers of stages by the choice of a module; see `activation_lists_fn`.
inline constexpr activation_lists_fn activation_lists{};

struct write_offload_plan_fn {
  /// Writes a plan as one JSON object to an output iterator of `char` and returns its end. The
  /// object has `status`, `boundaries`, `choices` (for each layer a list of `keep`, `recompute` and
  /// `offload`), `stages` (each with `time`, `bytes`, `in_flight` and `offloaded_bytes`),
  /// `step_time`, `lower_bound` and `proven`. If there is no plan, the object has `status`, `stage`
  /// and `missing_bytes` instead.
  ///
  /// Complexity: linear. Memory: the text. Determinism: portable. Errors: the errors of the
  /// iterator.
  template <std::output_iterator<char> Out>
  Out operator()(offload_plan const& plan, Out out) const {
    std::string text;
    if (plan.status != solve_status::solved) {
      text.append("{\"status\":\"infeasible\",\"stage\":").append(detail::to_text(plan.stage));
      text.append(",\"missing_bytes\":").append(detail::to_text(plan.missing_bytes)).append("}\n");
      detail::put_text(out, text);
      return out;
    }
    text.append("{\"status\":\"ok\",\n\"boundaries\":[");
    for (std::size_t s = 0; s != plan.boundaries.size(); ++s) {
      text.append(s == 0 ? "" : ",").append(detail::to_text(plan.boundaries[s]));
    }
    text.append("],\n\"choices\":[");
    for (std::size_t l = 0; l != plan.choices.size(); ++l) {
      text.append(l == 0 ? "\n[" : ",\n[");
      for (std::size_t j = 0; j != plan.choices[l].size(); ++j) {
        text.append(j == 0 ? "\"" : ",\"").append(detail::name_of(plan.choices[l][j])).append("\"");
      }
      text.append("]");
    }
    text.append("],\n\"stages\":[");
    for (std::size_t s = 0; s != plan.stages.size(); ++s) {
      auto const& stage = plan.stages[s];
      text.append(s == 0 ? "\n" : ",\n");
      text.append("{\"time\":").append(detail::to_text(stage.time));
      text.append(",\"bytes\":").append(detail::to_text(stage.bytes));
      text.append(",\"in_flight\":").append(detail::to_text(stage.in_flight));
      text.append(",\"offloaded_bytes\":").append(detail::to_text(stage.offloaded_bytes));
      text.append("}");
    }
    text.append("],\n\"step_time\":").append(detail::to_text(plan.step_time));
    text.append(",\"lower_bound\":").append(detail::to_text(plan.lower_bound));
    text.append(",\"proven\":").append(plan.proven ? "true" : "false").append("}\n");
    detail::put_text(out, text);
    return out;
  }
};

/// Writes a plan with offloaded activations as JSON; see `write_offload_plan_fn`.
inline constexpr write_offload_plan_fn write_offload_plan{};

struct write_checkpoint_policies_fn {
  /// Writes the policies of selective activation checkpointing in PyTorch as one JSON object to an
  /// output iterator of `char` and returns its end. For each layer, the object maps each name to an
  /// enumerator of `torch.utils.checkpoint.CheckpointPolicy`, for example
  /// `{"layers":[{"attention":"MUST_SAVE"}]}`. `names` are the names of the modules.
  /// `examples/python/checkpoint_policy.py` reads the file and creates the policy of a layer.
  ///
  /// Complexity: linear. Memory: the text. Determinism: portable. Errors: `std::invalid_argument`
  /// if a layer does not have one module for each name, or if a name has a quote, a backslash or a
  /// control character; the errors of the iterator.
  template <std::output_iterator<char> Out>
  Out operator()(offload_plan const& plan, std::span<std::string_view const> names, Out out) const {
    constexpr std::string_view function = "write_checkpoint_policies";
    constexpr std::string_view policies[]{"MUST_SAVE", "MUST_RECOMPUTE", "MUST_CPU_OFFLOAD"};
    detail::check_module_names(function, plan, names);
    for (std::string_view const one : names) {
      bool const is_plain = std::all_of(one.begin(), one.end(),
                                        [](char c) { return c >= ' ' && c != '"' && c != '\\'; });
      if (!is_plain) {
        detail::throw_invalid(function, "the name ", one,
                              " has a quote, a backslash or a control character");
      }
    }
    std::string text = "{\"layers\":[";
    for (std::size_t l = 0; l != plan.choices.size(); ++l) {
      text.append(l == 0 ? "\n{" : ",\n{");
      for (std::size_t j = 0; j != names.size(); ++j) {
        text.append(j == 0 ? "\"" : ",\"").append(names[j]).append("\":\"");
        text.append(policies[static_cast<std::size_t>(plan.choices[l][j])]).append("\"");
      }
      text.append("}");
    }
    text.append("]}\n");
    detail::put_text(out, text);
    return out;
  }
};

/// Writes checkpoint policies of PyTorch; see `write_checkpoint_policies_fn`.
inline constexpr write_checkpoint_policies_fn write_checkpoint_policies{};

/// The flags of fine-grained activation offloading in Megatron-LM.
struct megatron_offload {
  /// `--offload-modules`: the modules that are offloaded in at least one layer.
  std::vector<std::string> modules;
  /// `--activation-offload-fraction`: the share of the groups of a stage that are offloaded, the
  /// first groups in forward order. A group is a module of a layer.
  double fraction = 1;
  /// `--delta-offload-bytes-across-pp-ranks`: stage s keeps its first groups until their bytes
  /// reach `delta_bytes` times s.
  std::int64_t delta_bytes = 0;

  /// Returns the arguments of the command line; empty if nothing is offloaded.
  [[nodiscard]] std::string arguments() const {
    if (modules.empty()) return {};
    std::string result = "--fine-grained-activation-offloading --offload-modules";
    for (std::string const& one : modules) result.append(" ").append(one);
    result.append(" --activation-offload-fraction ").append(detail::to_text(fraction));
    return result.append(" --delta-offload-bytes-across-pp-ranks ")
        .append(detail::to_text(delta_bytes));
  }

  [[nodiscard]] friend bool operator==(megatron_offload const&, megatron_offload const&) = default;
};

struct megatron_offload_flags_fn {
  /// Returns the flags of Megatron-LM that offload the modules of a plan. `names` are the names of
  /// the modules in Megatron-LM, such as `core_attn`; a name is empty if Megatron-LM has none.
  ///
  /// The flags can express only few plans. Megatron-LM offloads a module in all layers of a stage,
  /// with three exceptions. The last layer of a stage that has the module keeps it. Stage s keeps
  /// its first groups until their bytes reach `delta_bytes` times s. Only the share `fraction` of
  /// the remaining groups is offloaded, the first groups first. A group is a module of a layer with
  /// bytes. `layer_input` is allowed only if all other modules of all layers are recomputed.
  ///
  /// Complexity: linear. Memory: a few numbers for each group. Determinism: portable. Errors:
  /// `std::invalid_argument` if the plan and the layers do not match, or if a layer does not have
  /// one module for each name. It is also thrown if Megatron-LM cannot run the plan; the message
  /// names the layer, the module or the flag. Source: Megatron-LM,
  /// docs/user-guide/features/fine_grained_activation_offloading.md.
  [[nodiscard]] megatron_offload operator()(offload_plan const& plan,
                                            std::span<offload_layer const> layers,
                                            std::span<std::string_view const> names) const {
    detail::check_offload_plan(name, plan);
    detail::check_size(name, "layers", layers.size(), plan.choices.size(), "layers of the plan");
    detail::check_module_names(name, plan, names);
    for (std::size_t l = 0; l != layers.size(); ++l) {
      detail::check_size(name, detail::joined_text("modules of layer ", l),
                         layers[l].activations.modules.size(), names.size(), "names");
    }
    std::vector<unsigned char> const is_used = used_modules(plan, layers, names);
    megatron_offload result;
    for (std::size_t j = 0; j != names.size(); ++j) {
      if (is_used[j] != 0) result.modules.emplace_back(names[j]);
    }
    if (result.modules.empty()) return result;
    check_layer_input(plan, names, is_used);
    flag_ranges ranges;
    for (std::size_t s = 0; s + 1 < plan.boundaries.size(); ++s) {
      auto const groups = groups_of(plan, layers, names, is_used, s);
      add_stage(groups, s, ranges);
    }
    result.delta_bytes = ranges.delta();
    result.fraction = ranges.fraction();
    return result;
  }

 private:
  static constexpr std::string_view name = "megatron_offload_flags";

  /// A module of a layer that the flags may offload.
  struct group {
    std::int64_t bytes;
    std::size_t layer;
    std::string_view module;
    bool is_offloaded;
  };

  /// The ranges of flag values that express the plan on all stages.
  struct flag_ranges {
    /// The range of `delta_bytes`, both ends included.
    std::int64_t least_delta = 0;
    std::int64_t most_delta = std::numeric_limits<std::int64_t>::max();
    /// The range of the share of groups that are not offloaded, without its upper end.
    double least_disabled = 0;
    double most_disabled = 1;

    [[nodiscard]] std::int64_t delta() const {
      if (least_delta > most_delta) {
        detail::throw_invalid(name,
                              "no delta_bytes keeps the first groups of all stages: ", least_delta,
                              " are too few and ", most_delta, " too many");
      }
      return least_delta;
    }
    [[nodiscard]] double fraction() const {
      if (least_disabled >= most_disabled) {
        detail::throw_invalid(name,
                              "no fraction offloads the groups of all stages: ", 1 - least_disabled,
                              " is too much and ", 1 - most_disabled, " too little");
      }
      return least_disabled == 0 ? 1 : 1 - (least_disabled + most_disabled) / 2;
    }
  };

  [[nodiscard]] static std::vector<unsigned char> used_modules(
      offload_plan const& plan, std::span<offload_layer const> layers,
      std::span<std::string_view const> names) {
    std::vector<unsigned char> result(names.size(), 0);
    for (std::size_t l = 0; l != layers.size(); ++l) {
      for (std::size_t j = 0; j != names.size(); ++j) {
        if (plan.choices[l][j] != activation_choice::offload) continue;
        if (layers[l].activations.modules[j].bytes == 0) continue;
        if (names[j].empty()) {
          detail::throw_invalid(name, "module ", j, " of layer ", l,
                                " is offloaded, and Megatron-LM has no module for it");
        }
        result[j] = 1;
      }
    }
    return result;
  }

  static void check_layer_input(offload_plan const& plan, std::span<std::string_view const> names,
                                std::span<unsigned char const> is_used) {
    for (std::size_t j = 0; j != names.size(); ++j) {
      if (is_used[j] == 0 || names[j] != "layer_input") continue;
      for (std::size_t l = 0; l != plan.choices.size(); ++l) {
        for (std::size_t k = 0; k != names.size(); ++k) {
          if (k == j || plan.choices[l][k] == activation_choice::recompute) continue;
          detail::throw_invalid(name, "module ", k, " of layer ", l,
                                " is not recomputed, which Megatron-LM requires for layer_input");
        }
      }
    }
  }

  /// Returns the groups of a stage in forward order, without the last group of each module.
  [[nodiscard]] static std::vector<group> groups_of(offload_plan const& plan,
                                                    std::span<offload_layer const> layers,
                                                    std::span<std::string_view const> names,
                                                    std::span<unsigned char const> is_used,
                                                    std::size_t stage) {
    std::vector<group> result;
    std::vector<unsigned char> is_seen(names.size(), 0);
    for (std::size_t l = plan.boundaries[stage + 1]; l-- != plan.boundaries[stage];) {
      for (std::size_t j = names.size(); j-- != 0;) {
        std::int64_t const bytes = layers[l].activations.modules[j].bytes;
        if (is_used[j] == 0 || bytes == 0) continue;
        bool const is_offloaded = plan.choices[l][j] == activation_choice::offload;
        if (is_seen[j] != 0) {
          result.push_back({bytes, l, names[j], is_offloaded});
          continue;
        }
        is_seen[j] = 1;
        if (!is_offloaded) continue;
        detail::throw_invalid(name, "layer ", l, " is the last of stage ", stage, " with ",
                              names[j], " and offloads it, which Megatron-LM never does");
      }
    }
    std::reverse(result.begin(), result.end());
    return result;
  }

  /// Narrows the ranges to the flag values with which a stage offloads its groups as planned.
  static void add_stage(std::vector<group> const& groups, std::size_t stage, flag_ranges& ranges) {
    auto const is_offloaded = [](group const& one) { return one.is_offloaded; };
    auto const begin = std::find_if(groups.begin(), groups.end(), is_offloaded);
    auto const end = std::find_if_not(begin, groups.end(), is_offloaded);
    auto const again = std::find_if(end, groups.end(), is_offloaded);
    if (again != groups.end()) {
      detail::throw_invalid(name, "stage ", stage, " offloads ", again->module, " of layer ",
                            again->layer, " behind ", end->module, " of layer ", end->layer,
                            ", which it keeps; Megatron-LM offloads groups in a row");
    }
    if (groups.empty()) return;
    auto const first = static_cast<std::size_t>(begin - groups.begin());
    if (stage == 0 && first != 0) {
      detail::throw_invalid(name, "stage 0 keeps ", groups[0].module, " of layer ", groups[0].layer,
                            ", its first group, which Megatron-LM offloads in stage 0");
    }
    auto const rank = static_cast<std::int64_t>(stage);
    std::int64_t before = 0;
    for (std::size_t k = 0; k + 1 < first; ++k) before += groups[k].bytes;
    if (first != 0) ranges.least_delta = std::max(ranges.least_delta, before / rank + 1);
    if (first == groups.size()) return;
    if (rank != 0) {
      std::int64_t const most = first == 0 ? 0 : (before + groups[first - 1].bytes) / rank;
      ranges.most_delta = std::min(ranges.most_delta, most);
    }
    auto const count = static_cast<double>(groups.size() - first);
    auto const disabled = static_cast<double>(groups.end() - end);
    ranges.least_disabled = std::max(ranges.least_disabled, disabled / count);
    ranges.most_disabled = std::min(ranges.most_disabled, (disabled + 1) / count);
  }
};

/// Returns the flags of Megatron-LM for a plan; see `megatron_offload_flags_fn`.
inline constexpr megatron_offload_flags_fn megatron_offload_flags{};

}  // namespace omnibal::inline v0
