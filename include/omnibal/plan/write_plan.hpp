// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Output of plans for trainers: JSON, the layout of Megatron-LM, the layers that recompute.

#include <omnibal/check.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/detail/put_text.hpp>
#include <omnibal/grouping.hpp>
#include <omnibal/plan/pipeline_plan.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <ranges>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace omnibal::inline v0::detail {

/// Throws unless the boundaries begin with zero and never descend.
template <sample_range Boundaries>
void check_boundaries(std::string_view function, Boundaries const& boundaries) {
  if (std::ranges::size(boundaries) == 0) throw_invalid(function, "there are no boundaries");
  std::ranges::range_value_t<Boundaries const> before{};
  std::size_t index = 0;
  for (auto const boundary : boundaries) {
    if (boundary < before || (index == 0 && boundary != 0)) {
      throw_invalid(function, "boundaries[" + to_text(index) + "] is " + to_text(boundary) +
                                  ", must be " + (index == 0 ? "" : "at least ") + to_text(before));
    }
    before = boundary;
    ++index;
  }
}

}  // namespace omnibal::inline v0::detail

namespace omnibal::inline v0 {

struct recompute_lists_fn {
  /// Returns, for each stage of a plan, the layers that run with choice number `choice`, in order.
  /// Layers are numbered over the whole model. Subtract `plan.boundaries[stage]` to get the number
  /// within the stage. If the plan is infeasible, the result has no stages.
  ///
  /// Complexity: linear. Memory: the result. Determinism: portable. Errors: `std::invalid_argument`
  /// if boundaries do not begin with zero, if boundaries descend, or if they do not end with the
  /// number of choices.
  template <scalar_measure Time>
  [[nodiscard]] grouping operator()(pipeline_plan<Time> const& plan, std::uint32_t choice) const {
    grouping result;
    if (plan.boundaries.empty()) return result;
    detail::check_boundaries(name, plan.boundaries);
    if (plan.boundaries.back() != plan.choices.size()) {
      detail::throw_invalid(name, "the plan has " + detail::to_text(plan.choices.size()) +
                                      " choices, its boundaries end with " +
                                      detail::to_text(plan.boundaries.back()));
    }
    for (std::size_t s = 0; s + 1 < plan.boundaries.size(); ++s) {
      for (std::uint32_t l = plan.boundaries[s]; l != plan.boundaries[s + 1]; ++l) {
        if (plan.choices[l] == choice) result.push(l);
      }
      result.close();
    }
    return result;
  }

 private:
  static constexpr std::string_view name = "recompute_lists";
};

/// Returns the layers of stages by choice; see `recompute_lists_fn`.
inline constexpr recompute_lists_fn recompute_lists{};

/// A functor from the number of a layer to the letter of its kind: `E` embedding, `t` transformer
/// layer, `m` layer of multi-token prediction, `L` all losses.
template <class Function>
concept layer_letter = std::regular_invocable<Function const&, std::uint32_t> && std::same_as <
                       std::remove_cvref_t<std::invoke_result_t<Function const&, std::uint32_t>>,
char > ;

/// The letters of a language model whose first layer is the embedding and whose last layer computes
/// all losses, with layers of multi-token prediction before it, as in Megatron-LM and as
/// `prediction_order::before_head` orders them.
struct language_model_letters {
  std::uint32_t layers = 0;
  std::uint32_t prediction_layers = 0;

  [[nodiscard]] constexpr char operator()(std::uint32_t layer) const {
    if (layer == 0) return 'E';
    if (layer + 1 == layers) return 'L';
    return layer + 1 + prediction_layers >= layers ? 'm' : 't';
  }
};

struct write_megatron_layout_fn {
  /// Writes the argument of `--pipeline-model-parallel-layout` to an output iterator of `char` and
  /// returns its end. The text has a letter for each layer and `|` between the stages; `t*7` means
  /// seven equal letters. `boundaries` are the boundaries of a plan, with virtual stages in the
  /// order of the model.
  ///
  /// Complexity: linear. Memory: a few strings. Determinism: portable. Errors:
  /// `std::invalid_argument` if the boundaries do not start at zero or are not ascending, or if a
  /// letter is not E, t, m or L. It is also thrown if Megatron-LM cannot run the order of the
  /// letters. Megatron-LM runs one E first, then t, then all m on one stage, and one L last.
  /// Source: Megatron-LM, megatron/core/transformer/pipeline_parallel_layer_layout.py.
  template <sample_range Boundaries, layer_letter Letter, std::output_iterator<char> Out>
  requires std::integral<std::ranges::range_value_t<Boundaries const>> Out
  operator()(Boundaries const& boundaries, Letter const& letter, Out out) const {
    detail::check_boundaries(name, boundaries);
    std::size_t const stages = std::ranges::size(boundaries) - 1;
    check_order(boundaries, letter);
    for (std::size_t s = 0; s != stages; ++s) {
      auto const first = static_cast<std::uint32_t>(std::ranges::begin(boundaries)[at(s)]);
      auto const last = static_cast<std::uint32_t>(std::ranges::begin(boundaries)[at(s + 1)]);
      std::string text = s == 0 ? "" : "|";
      append_layers(letter, first, last, text);
      detail::put_text(out, text);
    }
    return out;
  }

  /// Writes the layout of a plan, also with several chunks on each stage.
  ///
  /// Errors: as above, and `std::invalid_argument` if the chunks are not looped, or if a layer of
  /// multi-token prediction is in a chunk other than the last one, because Megatron-LM cannot run
  /// these plans.
  template <scalar_measure Time, layer_letter Letter, std::output_iterator<char> Out>
  Out operator()(pipeline_plan<Time> const& plan, Letter const& letter, Out out) const {
    if (plan.chunks != 1) check_chunks(plan, letter);
    return (*this)(plan.boundaries, letter, out);
  }

 private:
  static constexpr std::string_view name = "write_megatron_layout";
  static constexpr std::string_view order = "EtmL";

  [[nodiscard]] static std::ptrdiff_t at(std::size_t index) {
    return static_cast<std::ptrdiff_t>(index);
  }

  /// Throws unless Megatron-LM can run layers with this sequence of letters. The letters may be the
  /// whole model or some consecutive layers.
  template <class Boundaries, class Letter>
  static void check_order(Boundaries const& boundaries, Letter const& letter) {
    std::size_t const stages = std::ranges::size(boundaries) - 1;
    std::uint32_t layer = 0;
    std::size_t stage_before = 0;
    char before = '\0';
    for (std::size_t s = 0; s != stages; ++s) {
      auto const end = static_cast<std::uint32_t>(std::ranges::begin(boundaries)[at(s + 1)]);
      for (; layer != end; ++layer) {
        char const kind = checked_letter(letter, layer);
        bool const is_first = before == '\0';
        bool const may_repeat = kind == 't' || (kind == 'm' && s == stage_before);
        bool const is_in_order =
            is_first || (kind == before ? may_repeat : order.find(kind) > order.find(before));
        if (!is_in_order) throw_order(layer, kind, before, s != stage_before);
        before = kind;
        stage_before = s;
      }
    }
  }

  template <class Plan, class Letter>
  static void check_chunks(Plan const& plan, Letter const& letter) {
    if (plan.placement != chunk_placement::looped) {
      detail::throw_invalid(name,
                            "the chunks of the plan are not looped, and Megatron-LM runs "
                            "looped chunks only");
    }
    std::size_t const stages = plan.boundaries.empty() ? 0 : plan.boundaries.size() - 1;
    std::size_t const width = stages / plan.chunks;
    for (std::size_t s = 0; s + width < stages; ++s) {
      for (std::uint32_t l = plan.boundaries[s]; l < plan.boundaries[s + 1]; ++l) {
        if (std::invoke(letter, l) != 'm') continue;
        detail::throw_invalid(name, "layer ", l, " is m in chunk ", s / width, " of stage ",
                              s % width, ", and Megatron-LM runs m in the last chunk only");
      }
    }
  }

  [[noreturn]] static void throw_order(std::uint32_t layer, char kind, char before,
                                       bool is_next_stage) {
    detail::throw_invalid(name, "layer " + detail::to_text(layer) + " is " + std::string(1, kind) +
                                    " behind " + std::string(1, before) +
                                    (is_next_stage ? " of another stage" : "") +
                                    ", which Megatron-LM cannot run");
  }

  template <class Letter>
  static void append_layers(Letter const& letter, std::uint32_t first, std::uint32_t last,
                            std::string& text) {
    while (first != last) {
      char const kind = checked_letter(letter, first);
      std::uint32_t end = first + 1;
      while (end != last && checked_letter(letter, end) == kind) ++end;
      text.push_back(kind);
      if (end - first > 1) text.append("*").append(detail::to_text(end - first));
      first = end;
    }
  }

  template <class Letter>
  [[nodiscard]] static char checked_letter(Letter const& letter, std::uint32_t layer) {
    char const kind = std::invoke(letter, layer);
    if (order.find(kind) != std::string_view::npos) return kind;
    detail::throw_invalid(name, "the letter of layer " + detail::to_text(layer) + " is '" +
                                    std::string(1, kind) + "', must be E, t, m or L");
  }
};

/// Writes stages for Megatron-LM; see `write_megatron_layout_fn`.
inline constexpr write_megatron_layout_fn write_megatron_layout{};

struct write_plan_fn {
  /// Writes a plan as one JSON object to an output iterator of `char` and returns its end. The
  /// object has `status`, `boundaries`, `choices`, `stages` (each with `time`, `bytes` and
  /// `in_flight`), `step_time`, `lower_bound` and `proven`. With several chunks it also has
  /// `chunks` and `placement`, and the boundaries are the boundaries of virtual stages. If there is
  /// no plan, the object has `status`, `stage` and `missing_bytes` instead. A reader that supports
  /// 64-bit integers restores the same numbers.
  ///
  /// Complexity: linear. Memory: the text. Determinism: portable for integers. Errors: the errors
  /// of the iterator.
  template <scalar_measure Time, std::output_iterator<char> Out>
  Out operator()(pipeline_plan<Time> const& plan, Out out) const {
    std::string text;
    if (plan.status != solve_status::solved) {
      bool const is_infeasible = plan.status == solve_status::infeasible;
      text.append("{\"status\":\"").append(is_infeasible ? "infeasible" : "not_found");
      text.append("\",\"stage\":").append(detail::to_text(plan.stage));
      text.append(",\"missing_bytes\":").append(detail::to_text(plan.missing_bytes)).append("}\n");
      detail::put_text(out, text);
      return out;
    }
    text.append("{\"status\":\"ok\",\n\"boundaries\":").append(list(plan.boundaries));
    text.append(",\n\"choices\":").append(list(plan.choices)).append(",\n\"stages\":[");
    for (std::size_t s = 0; s != plan.stages.size(); ++s) {
      auto const& stage = plan.stages[s];
      text.append(s == 0 ? "\n" : ",\n");
      text.append("{\"time\":").append(detail::to_text(stage.time));
      text.append(",\"bytes\":").append(detail::to_text(stage.bytes));
      text.append(",\"in_flight\":").append(detail::to_text(stage.in_flight)).append("}");
    }
    if (plan.chunks != 1) {
      text.append("],\n\"chunks\":").append(detail::to_text(plan.chunks));
      bool const is_v = plan.placement == chunk_placement::v_shape;
      text.append(",\n\"placement\":\"").append(is_v ? "v_shape\"" : "looped\"");
    } else {
      text.append("]");
    }
    text.append(",\n\"step_time\":").append(detail::to_text(plan.step_time));
    text.append(",\"lower_bound\":").append(detail::to_text(plan.lower_bound));
    text.append(",\"proven\":").append(plan.proven ? "true" : "false").append("}\n");
    detail::put_text(out, text);
    return out;
  }

 private:
  [[nodiscard]] static std::string list(std::vector<std::uint32_t> const& numbers) {
    std::string result = "[";
    for (std::size_t i = 0; i != numbers.size(); ++i) {
      if (i != 0) result.append(",");
      result.append(detail::to_text(numbers[i]));
    }
    return result.append("]");
  }
};

/// Writes a plan as JSON; see `write_plan_fn`.
inline constexpr write_plan_fn write_plan{};

}  // namespace omnibal::inline v0
