#pragma once

/// \file
/// The measures of a phase on their way to the other ranks.

#include <omnibal/detail/integer_costs.hpp>
#include <omnibal/exchange/detail/quantised.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace omnibal::inline v0::detail {

/// The measures of the samples of the language model, or of the samples and pieces of an encoder.
struct phase_columns {
  /// Empty for the language model, which has one piece for each sample and no output.
  std::vector<std::int64_t> piece_counts;
  std::vector<std::int64_t> costs;
  std::vector<std::int64_t> bytes;
  std::vector<std::int64_t> output_bytes;
  /// Costs that wait for the largest of all ranks.
  std::vector<double> floating_costs;

  /// Removes all and keeps the memory.
  void clear() {
    for (auto* const column : {&piece_counts, &costs, &bytes, &output_bytes}) column->clear();
    floating_costs.clear();
  }

  template <class Cost, class Bytes>
  void push(std::string_view function, Cost cost, Bytes bytes_of_piece) {
    using working = working_weight<Cost>;
    std::size_t const index = bytes.size();
    auto const checked = checked_cost<working>(function, "cost", index, cost);
    if constexpr (std::floating_point<working>) {
      floating_costs.push_back(checked);
    } else {
      costs.push_back(checked);
    }
    bytes.push_back(checked_cost<std::int64_t>(function, "bytes", index, bytes_of_piece));
  }
  template <class Bytes>
  void push_output(std::string_view function, Bytes output) {
    output_bytes.push_back(
        checked_cost<std::int64_t>(function, "output bytes", output_bytes.size(), output));
  }

  [[nodiscard]] double largest_floating_cost() const {
    double result = 0.0;
    for (double const cost : floating_costs) result = std::max(result, cost);
    return result;
  }
  void quantise(double largest) {
    for (double const cost : floating_costs) costs.push_back(quantised(cost, largest));
    floating_costs.clear();
  }

  /// The number of values to be sent. Floating-point costs count as they will.
  [[nodiscard]] std::size_t word_count() const {
    return piece_counts.size() + costs.size() + floating_costs.size() + bytes.size() +
           output_bytes.size();
  }
  /// Appends the columns to what is sent.
  void write(std::vector<std::int64_t>& words) const {
    for (auto const* const column : {&piece_counts, &costs, &bytes, &output_bytes}) {
      words.insert(words.end(), column->begin(), column->end());
    }
  }

  /// Appends those of a rank with so many samples, and removes them from the words.
  void read_language(std::span<std::int64_t const>& words, std::size_t samples) {
    take(words, samples, costs);
    take(words, samples, bytes);
  }
  void read_encoder(std::span<std::int64_t const>& words, std::size_t samples) {
    std::size_t pieces = 0;
    for (std::int64_t const count : words.first(samples)) pieces += static_cast<std::size_t>(count);
    take(words, samples, piece_counts);
    take(words, pieces, costs);
    take(words, pieces, bytes);
    take(words, pieces, output_bytes);
  }

 private:
  static void take(std::span<std::int64_t const>& words, std::size_t count,
                   std::vector<std::int64_t>& column) {
    auto const taken = words.first(count);
    column.insert(column.end(), taken.begin(), taken.end());
    words = words.subspan(count);
  }
};

}  // namespace omnibal::inline v0::detail
