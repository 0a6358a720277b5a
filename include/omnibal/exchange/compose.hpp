#pragma once

/// \file
/// Two exchanges as one.

#include <omnibal/balance/index_measure.hpp>
#include <omnibal/check.hpp>
#include <omnibal/detail/integer_costs.hpp>
#include <omnibal/exchange/exchange_plan.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace omnibal::inline v0 {

struct compose_fn {
  /// The plan that takes samples at once to where `first` and then `second` would: with the inverse
  /// of the plan of an encoder and the plan of the language model, the outputs of the encoder
  /// travel once instead of twice. `bytes` is a functor of the index of what `first` starts with,
  /// or a range with an element for each.
  ///
  /// Complexity: linear but for a logarithm of the ranks for what changes its rank. Memory: the
  /// result. Determinism: portable. Errors: `std::invalid_argument` where `second` does not start
  /// with what each rank has after `first`, for another number of bytes, bytes that are negative
  /// or above 2^63 - 1 and no ranks in a node; `std::overflow_error` where the sum of the bytes
  /// leaves its type. Source: OrchMLLM (arXiv 2503.23830, 2025).
  template <detail::index_bytes Bytes>
  [[nodiscard]] exchange_plan operator()(exchange_plan const& first, exchange_plan const& second,
                                         Bytes const& bytes,
                                         placement_options const& options = {}) const {
    detail::check_ranks_per_node(name, options.ranks_per_node);
    auto const between = first.arrivals().offsets();
    if (!std::equal(between.begin(), between.end(), second.home_offsets().begin(),
                    second.home_offsets().end())) {
      detail::throw_invalid(name, "the second plan does not start where the first one ends");
    }
    detail::integer_costs<1> whole;
    detail::measure_bytes_into(name, bytes, first.sample_count(), whole);
    auto const from = first.arrivals().items();
    exchange_plan result;
    detail::plan_writer const writer{result};
    writer.start(first.home_offsets());
    for (std::size_t rank = 0; rank != second.ranks(); ++rank) {
      for (std::uint32_t const item : second.arrivals(rank)) writer.push(from[item]);
      writer.close();
    }
    writer.finish(options.ranks_per_node, [&](std::uint32_t sample) { return whole[sample][0]; });
    return result;
  }

 private:
  static constexpr std::string_view name = "compose";
};

/// Two exchanges as one; see `compose_fn`.
inline constexpr compose_fn compose{};

}  // namespace omnibal::inline v0
