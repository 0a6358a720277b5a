// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The micro-batches that a search may choose, from sequences of one length or by packing.

#include <omnibal/check.hpp>
#include <omnibal/context/context_groups.hpp>
#include <omnibal/cost/attention_span.hpp>
#include <omnibal/cost/layer_cost.hpp>
#include <omnibal/cost/layered_model.hpp>
#include <omnibal/grouping.hpp>
#include <omnibal/pack/best_fit_decreasing.hpp>
#include <omnibal/plan/configuration_plan.hpp>
#include <omnibal/resources.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <span>
#include <string_view>
#include <vector>

namespace omnibal::inline v0::detail {

/// A micro-batch that the search can choose: a number of sequences, or a capacity to which samples
/// are packed.
struct batch_choice {
  /// The value of `configuration_choice::micro_batch`: sequences, or the capacity in tokens.
  std::int64_t value = 0;
  std::int64_t sequences = 1;
  /// The work of the mean micro-batch and of the largest micro-batch.
  micro_batch_work work{};
  micro_batch_work largest{};
  std::int64_t token_capacity = 0;
  std::int64_t tile_capacity = 0;
  /// The tokens that context-parallel ranks share.
  std::int64_t shared_tokens = 0;
  /// The number of micro-batches of a step over all ranks, before it is rounded up to a multiple of
  /// the ranks.
  std::int64_t micro_batches = 0;
  /// True if the number of ranks must divide the number of micro-batches.
  bool is_exact = true;
  /// The model FLOPs of a micro-batch, including its padding.
  double flops = 0;
};

/// All micro-batches that a search can choose, and the model FLOPs of a step.
struct batch_choices {
  std::vector<batch_choice> choices;
  double flops = 0;
};

/// Returns the FLOPs of a model for a micro-batch, without recomputation.
template <layered_model Model>
[[nodiscard]] double model_flops(std::string_view function, Model const& model,
                                 micro_batch_work const& work) {
  double sum = 0;
  for_each_layer(function, model, [&](auto const& layer, std::int64_t count) {
    if (count == 0) return;
    layer_cost const cost = layer(work, parallel_degrees{}, byte_sizes{});
    sum += static_cast<double>(count) * static_cast<double>(cost.flops());
  });
  return sum;
}

/// Builds the choices of micro-batches.
class batch_chooser {
 public:
  batch_chooser(std::string_view function, step_data const& data,
                plan_configuration_options const& options)
      : function_(function), data_(data), options_(options) {}

  template <layered_model Model>
  [[nodiscard]] batch_choices operator()(Model const& model) {
    check();
    bool const is_packed = !data_.lengths.empty();
    if (is_packed) spans_ = attention_spans(model);
    batch_choices result{.choices = is_packed ? packed_batches() : equal_batches()};
    for (auto& choice : result.choices) choice.flops = model_flops(function_, model, choice.work);
    double const flops = model_flops(function_, model, is_packed ? mean_samples() : equal_work(1));
    result.flops = static_cast<double>(data_.sequences) * flops;
    if (is_packed) result.flops /= mean_count;
    return result;
  }

 private:
  static constexpr std::int64_t max_number = std::int64_t{1} << 30;
  /// The number of mean samples that are counted together, so that fractions of tiles and tokens of
  /// a mean sample are not lost.
  static constexpr std::int64_t mean_count = 1024;

  void check() const {
    bool const is_packed = !data_.lengths.empty();
    check_between(function_, "data.sequences", data_.sequences, 1, max_number);
    check_between(function_, "data.tokens", data_.tokens, is_packed ? 0 : 1,
                  is_packed ? 0 : max_number);
    check_between(function_, "data.document_tokens", data_.document_tokens, 0, data_.tokens);
    if (data_.document_tokens != 0) {
      check_multiple(function_, "data.tokens", data_.tokens, "data.document_tokens",
                     data_.document_tokens);
    }
    if (!data_.tiles.empty()) {
      check_size(function_, "data.tiles", data_.tiles.size(), data_.lengths.size(), "lengths");
    }
    if (!is_packed && !options_.token_capacities.empty()) {
      throw_invalid(function_, "options.token_capacities has values, but data.lengths has none");
    }
    if (is_packed && !options_.micro_batch_sizes.empty()) {
      throw_invalid(function_, "options.micro_batch_sizes has values, but samples are packed");
    }
    for (std::size_t i = 0; i != data_.lengths.size(); ++i) {
      check_between(function_, joined_text("data.lengths[", i, "]"), data_.lengths[i], 1,
                    max_number);
    }
    for (std::size_t i = 0; i != data_.tiles.size(); ++i) {
      check_between(function_, joined_text("data.tiles[", i, "]"), data_.tiles[i], 0, max_number);
    }
  }

  [[nodiscard]] micro_batch_work equal_work(std::int64_t count) const {
    std::int64_t const length = data_.document_tokens == 0 ? data_.tokens : data_.document_tokens;
    return {.documents =
                equal_sequences({.count = count * (data_.tokens / length), .length = length})};
  }

  [[nodiscard]] std::vector<batch_choice> equal_batches() const {
    std::vector<batch_choice> result;
    auto const& sizes = options_.micro_batch_sizes;
    for (std::int64_t const size : sizes) {
      check_between(function_, "options.micro_batch_sizes", size, 1, max_number);
      check_multiple(function_, "data.sequences", data_.sequences, "options.micro_batch_sizes",
                     size);
    }
    for (std::int64_t const size : divisors(static_cast<std::uint32_t>(data_.sequences))) {
      if (!sizes.empty() && std::ranges::find(sizes, size) == sizes.end()) continue;
      auto const work = equal_work(size);
      result.push_back({.value = size,
                        .sequences = size,
                        .work = work,
                        .largest = work,
                        .shared_tokens = data_.tokens,
                        .micro_batches = data_.sequences / size});
    }
    return result;
  }

  [[nodiscard]] std::vector<std::int64_t> capacities() const {
    std::int64_t const longest = std::ranges::max(data_.lengths);
    if (!options_.token_capacities.empty()) {
      for (std::int64_t const capacity : options_.token_capacities) {
        check_between(function_, "options.token_capacities", capacity, longest, max_number);
      }
      return options_.token_capacities;
    }
    constexpr std::int64_t unit = 256;
    std::int64_t const first = (longest + unit - 1) / unit * unit;
    std::vector<std::int64_t> result;
    for (std::int64_t const halves : {2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128}) {
      if (first * halves / 2 <= max_number) result.push_back(first * halves / 2);
    }
    return result;
  }

  /// Packs the data set for each capacity. The capacity in tiles is the share that the data set has
  /// of them, or a quarter more.
  [[nodiscard]] std::vector<batch_choice> packed_batches() const {
    std::vector<batch_choice> result;
    bool const has_tiles = !data_.tiles.empty() && std::ranges::max(data_.tiles) > 0;
    for (std::int64_t const capacity : capacities()) {
      if (!has_tiles) {
        result.push_back(packed(capacity, 0));
        continue;
      }
      double const ratio = static_cast<double>(sum(data_.tiles)) /
                           static_cast<double>(sum(data_.lengths)) * static_cast<double>(capacity);
      std::int64_t last = 0;
      for (double const slack : {1.0, 1.25}) {
        std::int64_t const tiles = std::max(std::ranges::max(data_.tiles),
                                            static_cast<std::int64_t>(std::ceil(slack * ratio)));
        if (tiles != last) result.push_back(packed(capacity, tiles));
        last = tiles;
      }
    }
    return result;
  }

  [[nodiscard]] static std::int64_t sum(std::vector<std::int64_t> const& values) {
    return std::accumulate(values.begin(), values.end(), std::int64_t{0});
  }

  [[nodiscard]] packing groups_of(std::int64_t tokens, std::int64_t tiles) const {
    std::vector<std::uint32_t> samples(data_.lengths.size());
    std::iota(samples.begin(), samples.end(), std::uint32_t{0});
    if (tiles == 0) {
      return best_fit_decreasing(
          samples, [&](std::uint32_t i) { return data_.lengths[i]; }, tokens);
    }
    return best_fit_decreasing(
        samples,
        [&](std::uint32_t i) {
          return resources{data_.tiles[i], data_.lengths[i]};
        },
        resources{tiles, tokens});
  }

  /// Sums over the lengths of documents: of their number, of their squares, and of their squares
  /// within each of the windows and chunks of the model.
  struct length_sums {
    double documents = 0;
    double squares = 0;
    std::array<double, max_attention_spans> within{};

    void add(sequences const& given) {
      documents += static_cast<double>(given.count);
      squares += static_cast<double>(given.squares);
      for (std::size_t i = 0; i != within.size(); ++i) {
        within[i] += static_cast<double>(given.spans[i].squares);
      }
    }
  };

  /// Statistics of the padded groups of a packing: the number of groups, sums over all groups, and
  /// maxima of a group.
  struct group_sums {
    double groups = 0;
    length_sums lengths{};
    std::int64_t max_squares = 0;
    std::array<std::int64_t, max_attention_spans> max_within{};
    std::int64_t max_tiles = 0;
  };

  /// Computes the statistics of groups that are padded to their capacity in tokens. The padding of
  /// a group counts as one more document.
  [[nodiscard]] group_sums measure(grouping const& groups, std::int64_t capacity) const {
    group_sums result;
    std::vector<std::int64_t> lengths;
    for (auto const& group : groups) {
      lengths.assign(1, capacity);
      std::int64_t tiles = 0;
      for (std::uint32_t const sample : group) {
        lengths.push_back(data_.lengths[sample]);
        lengths.front() -= data_.lengths[sample];
        if (!data_.tiles.empty()) tiles += data_.tiles[sample];
      }
      sequences const documents = sequences_of(lengths, std::identity{}, spans_);
      result.groups += 1;
      result.lengths.add(documents);
      result.max_squares = std::max(result.max_squares, documents.squares);
      for (std::size_t i = 0; i != spans_.size(); ++i) {
        result.max_within[i] = std::max(result.max_within[i], documents.spans[i].squares);
      }
      result.max_tiles = std::max(result.max_tiles, tiles);
    }
    return result;
  }

  /// Returns the micro-batch of a packing. A step ends with the ranks that have the most tiles, so
  /// each micro-batch counts the largest number of tiles.
  [[nodiscard]] batch_choice packed(std::int64_t capacity, std::int64_t tile_capacity) const {
    group_sums const sums = measure(groups_of(capacity, tile_capacity).groups, capacity);
    micro_batch_work const work{.tiles = sums.max_tiles,
                                .documents = documents_of(capacity, sums.lengths, sums.groups)};
    micro_batch_work largest = work;
    largest.documents.squares = std::max(sums.max_squares, work.documents.squares);
    for (std::size_t i = 0; i != spans_.size(); ++i) {
      std::int64_t& squares = largest.documents.spans[i].squares;
      squares = std::max(squares, sums.max_within[i]);
    }
    double const steps =
        static_cast<double>(data_.lengths.size()) / static_cast<double>(data_.sequences);
    return {.value = capacity,
            .work = work,
            .largest = largest,
            .token_capacity = capacity,
            .tile_capacity = tile_capacity,
            .shared_tokens = capacity,
            .micro_batches = std::max<std::int64_t>(
                1, static_cast<std::int64_t>(std::ceil(sums.groups / steps))),
            .is_exact = false};
  }

  [[nodiscard]] static std::int64_t rounded(double value) {
    return static_cast<std::int64_t>(std::floor(value + 0.5));
  }

  /// Returns documents with this total number of tokens, whose other numbers are the sums divided
  /// by `parts`.
  [[nodiscard]] sequences documents_of(std::int64_t tokens, length_sums const& sums,
                                       double parts) const {
    auto const whole = std::clamp<std::int64_t>(rounded(sums.documents / parts), 1, tokens);
    std::int64_t const min_squares = (tokens * tokens + whole - 1) / whole;
    sequences result{
        .count = whole,
        .tokens = tokens,
        .squares = std::clamp(rounded(sums.squares / parts), min_squares, tokens * tokens)};
    for (std::size_t i = 0; i != spans_.size(); ++i) {
      if (spans_[i].kind == span_kind::whole) break;
      std::int64_t const within = rounded(sums.within[i] / parts);
      result.spans[i] = {spans_[i], std::clamp(within, tokens, result.squares)};
    }
    return result;
  }

  [[nodiscard]] micro_batch_work mean_samples() const {
    double const parts =
        static_cast<double>(data_.lengths.size()) / static_cast<double>(mean_count);
    length_sums sums;
    for (std::int64_t const length : data_.lengths) {
      sums.add(sequences_of(std::span(&length, 1), std::identity{}, spans_));
    }
    std::int64_t const tokens =
        std::max(mean_count, rounded(static_cast<double>(sum(data_.lengths)) / parts));
    return {.tiles = rounded(static_cast<double>(sum(data_.tiles)) / parts),
            .documents = documents_of(tokens, sums, parts)};
  }

  std::string_view function_;
  step_data const& data_;
  plan_configuration_options const& options_;
  /// The windows and chunks of the model if the samples are packed.
  std::array<attention_span, max_attention_spans> spans_{};
};

}  // namespace omnibal::inline v0::detail
