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
#include <omnibal/exchange/make_plan_options.hpp>
#include <omnibal/resources.hpp>

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
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

/// The measures of the samples of a phase with costs of `R` kinds, or of the samples and pieces of
/// an encoder.
template <std::size_t R>
struct phase_columns {
  /// Empty where each sample is one piece and has no output.
  std::vector<std::int64_t> piece_counts;
  std::vector<lengths_of_sample<R>> costs;
  std::vector<std::int64_t> bytes;
  std::vector<std::int64_t> output_bytes;
  /// Costs that wait for the largest of all ranks.
  std::vector<resources<R, double>> floating_costs;

  /// Removes all and keeps the memory.
  void clear() {
    for (auto* const column : {&piece_counts, &bytes, &output_bytes}) column->clear();
    costs.clear();
    floating_costs.clear();
  }

  /// Throws for numbers that are negative, not finite or above 2^63 - 1.
  template <class Cost, class Bytes>
  void push(std::string_view function, Cost const& cost, Bytes bytes_of_piece) {
    using working = working_weight<typename weight_of<Cost>::type>;
    std::size_t const index = bytes.size();
    if constexpr (std::floating_point<working>) {
      floating_costs.emplace_back();
    } else {
      costs.emplace_back();
    }
    for (std::size_t r = 0; r != R; ++r) {
      working amount{};
      if constexpr (weight<Cost>) {
        amount = checked_cost<working>(function, "cost", index, cost);
      } else {
        amount = checked_cost<working>(function, "cost", index, cost[r]);
      }
      if constexpr (std::floating_point<working>) {
        floating_costs.back()[r] = amount;
      } else {
        kind(costs.back(), r) = amount;
      }
    }
    bytes.push_back(checked_cost<std::int64_t>(function, "bytes", index, bytes_of_piece));
  }
  template <class Bytes>
  void push_output(std::string_view function, Bytes output) {
    output_bytes.push_back(
        checked_cost<std::int64_t>(function, "output bytes", output_bytes.size(), output));
  }

  [[nodiscard]] std::array<double, R> largest_floating_costs() const {
    std::array<double, R> result{};
    for (auto const& cost : floating_costs) {
      for (std::size_t r = 0; r != R; ++r) result[r] = std::max(result[r], cost[r]);
    }
    return result;
  }
  /// Makes integers of the floating-point costs, on which ranks agree.
  void quantise(std::array<double, R> const& largest) {
    std::size_t const first = costs.size();
    costs.resize(first + floating_costs.size());
    for (std::size_t r = 0; r != R; ++r) {
      auto const to_share = fixed_point::by_share(largest[r], 31);
      for (std::size_t i = 0; i != floating_costs.size(); ++i) {
        kind(costs[first + i], r) = to_share(floating_costs[i][r]);
      }
    }
    floating_costs.clear();
  }

  /// The number of values to be sent. Floating-point costs count as they will.
  [[nodiscard]] std::size_t word_count() const {
    return piece_counts.size() + R * (costs.size() + floating_costs.size()) + bytes.size() +
           output_bytes.size();
  }
  /// Appends the columns to what is sent.
  void write(std::vector<std::int64_t>& words) const {
    auto const append = [&words](std::vector<std::int64_t> const& column) {
      words.insert(words.end(), column.begin(), column.end());
    };
    append(piece_counts);
    for (auto const& cost : costs) {
      for (std::size_t r = 0; r != R; ++r) words.push_back(kind(cost, r));
    }
    append(bytes);
    append(output_bytes);
  }

  /// Appends those of a rank with so many samples, and removes them from the words.
  void read_samples(std::span<std::int64_t const>& words, std::size_t samples) {
    take_costs(words, samples);
    take(words, samples, bytes);
  }
  void read_encoder(std::span<std::int64_t const>& words, std::size_t samples) {
    std::size_t pieces = 0;
    for (std::int64_t const count : words.first(samples)) pieces += static_cast<std::size_t>(count);
    take(words, samples, piece_counts);
    take_costs(words, pieces);
    take(words, pieces, bytes);
    take(words, pieces, output_bytes);
  }

 private:
  template <class CostOfKinds>
  [[nodiscard]] static auto& kind(CostOfKinds& cost, std::size_t r) {
    if constexpr (R == 1) {
      return cost;
    } else {
      return cost[r];
    }
  }

  static void take(std::span<std::int64_t const>& words, std::size_t count,
                   std::vector<std::int64_t>& column) {
    auto const taken = words.first(count);
    column.insert(column.end(), taken.begin(), taken.end());
    words = words.subspan(count);
  }
  void take_costs(std::span<std::int64_t const>& words, std::size_t count) {
    for (std::size_t i = 0; i != count; ++i) {
      auto& cost = costs.emplace_back();
      for (std::size_t r = 0; r != R; ++r) kind(cost, r) = words[i * R + r];
    }
    words = words.subspan(count * R);
  }
};

/// What a rank says of its samples before it sends their measures.
template <std::size_t R, std::size_t Phases>
struct phase_facts {
  std::uint64_t samples = 0;
  std::uint64_t words = 0;
  /// The largest costs of each phase, where they are floating-point numbers.
  std::array<std::array<double, R>, Phases> largest{};
};

/// Lets every rank have the measures of all. The first phase has one piece for each sample, the
/// others are encoders. Keeps its memory.
template <std::size_t R, std::size_t Phases>
class phase_gather {
 public:
  /// To be filled before `facts`, and those of all ranks after `run`.
  std::array<phase_columns<R>, Phases> own;
  std::array<phase_columns<R>, Phases> all;
  /// Where the samples of each rank begin, and where those of the last one end, after `run`.
  std::vector<std::uint64_t> offsets;

  void clear() {
    for (auto& columns : own) columns.clear();
  }
  [[nodiscard]] phase_facts<R, Phases> facts(std::size_t samples) const {
    phase_facts<R, Phases> result{.samples = samples};
    for (std::size_t p = 0; p != Phases; ++p) {
      result.words += own[p].word_count();
      result.largest[p] = own[p].largest_floating_costs();
    }
    return result;
  }

  /// `reports` have the facts of all ranks.
  template <class Comm, class Reports>
  void run(Comm& comm, Reports const& reports) {
    quantise(reports);
    words_.clear();
    for (auto const& columns : own) columns.write(words_);
    counts_.clear();
    offsets.assign(1, 0);
    for (auto const& report : reports) {
      counts_.push_back(report.facts.words);
      offsets.push_back(offsets.back() + report.facts.samples);
    }
    gather_.run(comm, std::span<std::int64_t const>(words_), counts_, rows_);
    for (auto& columns : all) columns.clear();
    for (std::size_t rank = 0; rank != reports.size(); ++rank) {
      std::span<std::int64_t const> row = std::as_const(rows_)[rank];
      std::size_t const samples = reports[rank].facts.samples;
      all[0].read_samples(row, samples);
      for (std::size_t p = 1; p != Phases; ++p) all[p].read_encoder(row, samples);
    }
  }

 private:
  template <class Reports>
  void quantise(Reports const& reports) {
    for (std::size_t p = 0; p != Phases; ++p) {
      std::array<double, R> largest{};
      for (auto const& report : reports) {
        for (std::size_t r = 0; r != R; ++r) {
          largest[r] = std::max(largest[r], report.facts.largest[p][r]);
        }
      }
      own[p].quantise(largest);
    }
  }

  std::vector<std::int64_t> words_;
  std::vector<std::uint64_t> counts_;
  ragged<std::int64_t> rows_;
  padded_gather gather_;
};

}  // namespace omnibal::inline v0::detail
