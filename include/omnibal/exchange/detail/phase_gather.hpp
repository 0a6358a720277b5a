#pragma once

/// \file
/// The measures of the samples of all ranks, on which all decide.

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
#include <numeric>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace omnibal::inline v0::detail {

/// A number by which ranks compare their options. `shape` is what else must be equal, such as the
/// number of kinds of costs.
[[nodiscard]] inline std::uint64_t digest_of_options(make_plan_options const& options,
                                                     std::uint64_t shape) {
  data_digest digest;
  digest.add(std::uint64_t{options.ranks_per_node});
  digest.add(options.max_overload);
  digest.add(shape);
  return digest.value();
}

/// What a rank has measured of the samples of a phase with costs of `R` kinds, or of the samples
/// and pieces of an encoder: words for all ranks. Keeps its memory.
template <std::size_t R>
struct measured_phase {
  /// Empty where each sample is one piece and has no output.
  std::vector<std::int64_t> piece_counts;
  /// Of each piece its costs, its bytes and, for an encoder, those of its output. The bits of
  /// floating-point costs become integers when the largest of all ranks is known.
  std::vector<std::int64_t> words;
  bool is_floating = false;
  std::size_t pieces = 0;

  void clear() {
    piece_counts.clear();
    words.clear();
    is_floating = false;
    pieces = 0;
  }

  /// A piece; `output` are the bytes of what an encoder makes of it. Throws for numbers that are
  /// negative, not finite or above 2^63 - 1.
  template <class Cost, class Bytes, class... Output>
  void push(std::string_view function, Cost const& cost, Bytes bytes, Output... output) {
    using working = working_weight<typename weight_of<Cost>::type>;
    is_floating = std::floating_point<working>;
    auto const amounts = checked_costs<working>(function, "cost", pieces, cost);
    for (std::size_t r = 0; r != R; ++r) {
      words.push_back(std::bit_cast<std::int64_t>(amounts[r]));
    }
    words.push_back(checked_cost<std::int64_t>(function, "bytes", pieces, bytes));
    (words.push_back(checked_cost<std::int64_t>(function, "output bytes", pieces, output)), ...);
    ++pieces;
  }
};

/// The measures of a phase on all ranks.
template <std::size_t R>
struct phase_columns {
  std::vector<std::int64_t> piece_counts;
  std::vector<lengths_of_sample<R>> costs;
  std::vector<std::int64_t> bytes;
  std::vector<std::int64_t> output_bytes;

  /// Removes all and keeps the memory.
  void clear() {
    for (auto* const column : {&piece_counts, &bytes, &output_bytes}) column->clear();
    costs.clear();
  }

  /// Appends those of a rank with so many samples, and removes them from the words.
  void read(std::span<std::int64_t const>& words, std::size_t samples, bool is_encoder) {
    std::size_t pieces = samples;
    if (is_encoder) {
      auto const counts = words.first(samples);
      piece_counts.insert(piece_counts.end(), counts.begin(), counts.end());
      pieces = std::accumulate(counts.begin(), counts.end(), std::size_t{0});
      words = words.subspan(samples);
    }
    std::size_t const stride = R + (is_encoder ? 2 : 1);
    for (std::size_t piece = 0; piece != pieces; ++piece, words = words.subspan(stride)) {
      auto& cost = costs.emplace_back();
      if constexpr (R == 1) {
        cost = words[0];
      } else {
        std::copy_n(words.begin(), R, cost.amounts);
      }
      bytes.push_back(words[R]);
      if (is_encoder) output_bytes.push_back(words[R + 1]);
    }
  }

  /// Makes integers of the bits of floating-point costs, by the largest of each kind.
  void quantise() {
    for (std::size_t r = 0; r != R; ++r) {
      double largest = 0;
      for (auto& cost : costs) largest = std::max(largest, std::bit_cast<double>(amount(cost, r)));
      auto const to_share = fixed_point::by_share(largest, 31);
      for (auto& cost : costs) {
        amount(cost, r) = to_share(std::bit_cast<double>(amount(cost, r)));
      }
    }
  }

 private:
  [[nodiscard]] static std::int64_t& amount(lengths_of_sample<R>& cost, std::size_t r) {
    if constexpr (R == 1) {
      return cost;
    } else {
      return cost.amounts[r];
    }
  }
};

/// What a rank says of its samples before it sends their measures. As large for every number of
/// kinds and phases, so that different ones are found out.
struct phase_facts {
  std::uint64_t samples = 0;
  std::uint64_t words = 0;
  /// A bit for each phase with floating-point costs.
  std::uint64_t floating = 0;
};

/// Lets every rank have the measures of all. The first phase has one piece for each sample, the
/// others are encoders. Keeps its memory.
template <std::size_t R, std::size_t Phases>
class phase_gather {
 public:
  /// To be filled before `facts`, and those of all ranks after `run`.
  std::array<measured_phase<R>, Phases> own;
  std::array<phase_columns<R>, Phases> all;
  /// Where the samples of each rank begin, and where those of the last one end, after `run`.
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

  /// `reports` have the facts of all ranks.
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
        all[p].read(row, reports[rank].facts.samples, p != 0);
    }
    for (std::size_t p = 0; p != Phases; ++p) {
      if ((floating >> p & 1) != 0) all[p].quantise();
    }
  }

 private:
  std::vector<std::int64_t> words_;
  std::vector<std::uint64_t> counts_;
  ragged<std::int64_t> rows_;
  padded_gather gather_;
};

}  // namespace omnibal::inline v0::detail
