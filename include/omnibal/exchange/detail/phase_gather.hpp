// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The costs and bytes of the samples of all ranks, gathered so that all ranks make the same
/// decisions.

#include <omnibal/comm/gather_lengths.hpp>
#include <omnibal/comm/ragged.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/detail/conversions.hpp>
#include <omnibal/detail/data_digest.hpp>
#include <omnibal/detail/integer_costs.hpp>
#include <omnibal/detail/padded_gather.hpp>
#include <omnibal/exchange/exchange_plan.hpp>
#include <omnibal/resources.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace omnibal::inline v0::detail {

/// Returns a number by which ranks compare their options. `shape` represents all other values that
/// must be equal, such as the number of kinds of costs.
[[nodiscard]] inline std::uint64_t digest_of_options(make_plan_options const& options,
                                                     std::uint64_t shape) {
  data_digest digest;
  digest.add(std::uint64_t{options.ranks_per_node});
  digest.add(std::uint64_t{options.node_of.size()});
  for (std::uint32_t const node : options.node_of) digest.add(std::uint64_t{node});
  digest.add(options.max_overload);
  digest.add(std::uint64_t{options.speeds.size()});
  for (double const speed : options.speeds) digest.add(speed);
  digest.add(shape);
  return digest.value();
}

/// The kinds of the costs of a phase, and whether they are floating-point numbers, as one number.
/// The number must be equal on all ranks.
template <class Cost>
inline constexpr std::uint64_t shape_of_cost = 2 * kinds_of<Cost> +
                                               (std::integral<typename weight_of<Cost>::type> ? 0
                                                                                              : 1);

/// The measures of a rank for the samples of a phase, or for the samples and pieces of an encoder,
/// as words that all ranks receive. Later calls reuse its memory.
struct measured_phase {
  /// The number of kinds of the costs.
  std::size_t kinds = 1;
  /// The number of pieces of each sample; empty if each sample is one piece and has no output.
  std::vector<std::int64_t> piece_counts;
  /// The costs and bytes of each piece and, for an encoder, the bytes of its output. The bits of
  /// floating-point costs become integers when the largest cost of all ranks is known.
  std::vector<std::int64_t> words;
  bool is_floating = false;
  std::size_t pieces = 0;

  void clear() {
    piece_counts.clear();
    words.clear();
    is_floating = false;
    pieces = 0;
  }

  /// Adds a piece; `output` is the number of bytes of its encoder output. Throws if a number is
  /// negative, not finite or above 2^63 - 1.
  template <class Cost, class Bytes, class... Output>
  void push(std::string_view function, Cost const& cost, Bytes bytes, Output... output) {
    using working = working_weight<typename weight_of<Cost>::type>;
    is_floating = std::floating_point<working>;
    auto const amounts = checked_costs<working>(function, "cost", pieces, cost);
    for (auto const amount : amounts.amounts) words.push_back(std::bit_cast<std::int64_t>(amount));
    words.push_back(checked_cost<std::int64_t>(function, "bytes", pieces, bytes));
    (words.push_back(checked_cost<std::int64_t>(function, "output bytes", pieces, output)), ...);
    ++pieces;
  }

  /// Adds all samples of this rank.
  template <class Samples, class Cost, class Bytes>
  void measure(std::string_view function, Samples const& local, Cost const& cost,
               Bytes const& bytes) {
    kinds = cost_kinds<Samples, Cost>;
    for (auto&& sample : local) {
      auto const amounts = std::invoke(cost, sample);
      push(function, amounts, std::invoke(bytes, sample));
    }
  }
};

/// The costs of all pieces by index, in the form that balancers accept. This is a view of `words`.
template <std::size_t R>
struct cost_column {
  std::span<std::int64_t const> words;

  [[nodiscard]] std::size_t size() const { return words.size() / R; }
  [[nodiscard]] lengths_of_sample<R> operator()(std::uint32_t piece) const {
    if constexpr (R == 1) {
      return words[piece];
    } else {
      lengths_of_sample<R> result;
      std::copy_n(&words[piece * R], R, result.amounts);
      return result;
    }
  }
};

/// The measures of a phase on all ranks.
struct phase_columns {
  std::vector<std::uint32_t> piece_counts;
  /// The costs of all pieces; all kinds of a piece are contiguous.
  std::vector<std::int64_t> costs;
  std::vector<std::int64_t> bytes;
  std::vector<std::int64_t> output_bytes;

  /// Removes all measures and keeps the memory.
  void clear() {
    piece_counts.clear();
    for (auto* const column : {&costs, &bytes, &output_bytes}) column->clear();
  }

  /// Appends the measures of a rank with this number of samples, and removes them from the
  /// beginning of `words`.
  void read(std::span<std::int64_t const>& words, std::size_t samples, std::size_t kinds,
            bool is_encoder) {
    std::size_t pieces = samples;
    if (is_encoder) {
      pieces = 0;
      for (std::int64_t const count : words.first(samples)) {
        piece_counts.push_back(static_cast<std::uint32_t>(count));
        pieces += piece_counts.back();
      }
      words = words.subspan(samples);
    }
    std::size_t const stride = kinds + (is_encoder ? 2 : 1);
    for (std::size_t piece = 0; piece != pieces; ++piece, words = words.subspan(stride)) {
      for (std::size_t r = 0; r != kinds; ++r) costs.push_back(words[r]);
      bytes.push_back(words[kinds]);
      if (is_encoder) output_bytes.push_back(words[kinds + 1]);
    }
  }

  /// Maps the bits of floating-point costs to integers, by the largest cost of each kind.
  void quantize(std::size_t kinds) {
    for (std::size_t r = 0; r != kinds; ++r) {
      double largest = 0;
      for (std::size_t i = r; i < costs.size(); i += kinds) {
        largest = std::max(largest, std::bit_cast<double>(costs[i]));
      }
      auto const to_share = fixed_point::by_share(largest, 31);
      for (std::size_t i = r; i < costs.size(); i += kinds) {
        costs[i] = to_share(std::bit_cast<double>(costs[i]));
      }
    }
  }
};

/// The report of a rank about its samples before it sends their measures. Its size does not depend
/// on the number of kinds and phases, because ranks must detect different numbers.
struct phase_facts {
  std::uint64_t samples = 0;
  std::uint64_t words = 0;
  /// A bit for each phase with floating-point costs.
  std::uint64_t floating = 0;
};

/// Gathers the measures of all ranks on every rank. The first phase has one piece for each sample;
/// the other phases are encoders. Later calls reuse the memory.
template <std::size_t Phases>
class phase_gather {
 public:
  /// The measures of this rank, filled by the caller before `facts`.
  std::array<measured_phase, Phases> own;
  /// The measures of all ranks after `run`.
  std::array<phase_columns, Phases> all;
  /// The offsets of the samples of each rank, with the end of the last rank, after `run`.
  std::vector<std::uint64_t> offsets;

  void clear() {
    for (auto& phase : own) phase.clear();
  }
  [[nodiscard]] phase_facts facts(std::size_t samples) const {
    static_assert(Phases <= 64);
    phase_facts result{.samples = samples};
    for (std::size_t p = 0; p != Phases; ++p) {
      result.words += own[p].piece_counts.size() + own[p].words.size();
      result.floating |= std::uint64_t{own[p].is_floating} << p;
    }
    return result;
  }

  /// Gathers the measures; `reports` contains the facts of all ranks.
  template <class Comm, class Reports>
  void run(Comm& comm, Reports const& reports) {
    words_.clear();
    for (auto const& phase : own) {
      for (auto const* const part : {&phase.piece_counts, &phase.words}) {
        words_.insert(words_.end(), part->begin(), part->end());
      }
    }
    counts_.clear();
    offsets.assign(1, 0);
    std::uint64_t floating = 0;
    for (auto const& report : reports) {
      floating |= report.facts.floating;
      counts_.push_back(report.facts.words);
      offsets.push_back(offsets.back() + report.facts.samples);
    }
    gather_.run(comm, std::span<std::int64_t const>(words_), counts_, rows_);
    for (auto& columns : all) columns.clear();
    for (std::size_t rank = 0; rank != reports.size(); ++rank) {
      std::span<std::int64_t const> row = std::as_const(rows_)[rank];
      for (std::size_t p = 0; p != Phases; ++p)
        all[p].read(row, reports[rank].facts.samples, own[p].kinds, p != 0);
    }
    for (std::size_t p = 0; p != Phases; ++p) {
      if ((floating >> p & 1) != 0) all[p].quantize(own[p].kinds);
    }
  }

 private:
  std::vector<std::int64_t> words_;
  std::vector<std::uint64_t> counts_;
  ragged<std::int64_t> rows_;
  padded_gather gather_;
};

}  // namespace omnibal::inline v0::detail
