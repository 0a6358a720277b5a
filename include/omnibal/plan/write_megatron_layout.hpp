#pragma once

/// \file
/// The stages of a plan as Megatron-LM reads them.

#include <omnibal/check.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/plan/detail/check_boundaries.hpp>

#include <algorithm>
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

namespace omnibal::inline v0 {

/// A functor from the number of a layer to the letter of its kind: `E` embedding, `t` transformer
/// layer, `m` layer for multi-token prediction, `L` loss.
template <class Function>
concept layer_letter = std::regular_invocable<Function const&, std::uint32_t> && std::same_as <
                       std::remove_cvref_t<std::invoke_result_t<Function const&, std::uint32_t>>,
char > ;

/// Letters of a language model whose first layer is the embedding and whose last is the loss.
struct language_model_letters {
  std::uint32_t layers = 0;

  [[nodiscard]] constexpr char operator()(std::uint32_t layer) const {
    if (layer == 0) return 'E';
    return layer + 1 == layers ? 'L' : 't';
  }
};

struct write_megatron_layout_fn {
  /// Writes the argument of `--pipeline-model-parallel-layout` to an output iterator of `char` and
  /// returns its end: a letter for each layer, `|` between the stages, and `t*7` for seven equal
  /// letters. `boundaries` are those of a plan, with virtual stages in the order of the model.
  ///
  /// Complexity: linear. Memory: a few strings. Determinism: portable. Errors:
  /// `std::invalid_argument` for boundaries that do not begin with zero or that descend, and for
  /// another letter than E, t, m and L. Source: Megatron-LM,
  /// megatron/core/transformer/pipeline_parallel_layer_layout.py.
  template <sample_range Boundaries, layer_letter Letter, std::output_iterator<char> Out>
  requires std::integral<std::ranges::range_value_t<Boundaries const>> Out
  operator()(Boundaries const& boundaries, Letter const& letter, Out out) const {
    detail::check_boundaries(name, boundaries);
    std::size_t const stages = std::ranges::size(boundaries) - 1;
    for (std::size_t s = 0; s != stages; ++s) {
      auto const first = static_cast<std::uint32_t>(std::ranges::begin(boundaries)[at(s)]);
      auto const last = static_cast<std::uint32_t>(std::ranges::begin(boundaries)[at(s + 1)]);
      std::string text = s == 0 ? "" : "|";
      append_layers(letter, first, last, text);
      out = std::ranges::copy(text, std::move(out)).out;
    }
    return out;
  }

 private:
  static constexpr std::string_view name = "write_megatron_layout";

  [[nodiscard]] static std::ptrdiff_t at(std::size_t index) {
    return static_cast<std::ptrdiff_t>(index);
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
    if (std::string_view("EtmL").find(kind) != std::string_view::npos) return kind;
    detail::throw_invalid(name, "the letter of layer " + detail::to_text(layer) + " is '" +
                                    std::string(1, kind) + "', must be E, t, m or L");
  }
};

/// Stages for Megatron-LM; see `write_megatron_layout_fn`.
inline constexpr write_megatron_layout_fn write_megatron_layout{};

}  // namespace omnibal::inline v0
