// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Composition of two exchanges.

#include <omnibal/balance/index_measure.hpp>
#include <omnibal/check.hpp>
#include <omnibal/detail/integer_costs.hpp>
#include <omnibal/exchange/exchange_plan.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

namespace omnibal::inline v0 {

/// Memory of `compose`, and its last result. Use the same workspace in all steps.
class compose_workspace {
 public:
  /// Returns the result of the last call.
  [[nodiscard]] exchange_plan const& result() const& { return result_; }
  void result() const&& = delete;

 private:
  friend struct compose_fn;

  detail::integer_costs<1> bytes_;
  exchange_plan result_;
};

struct compose_fn {
  /// Composes two plans into one that sends samples directly to their place after `first` and then
  /// `second`. For example, the first plan is the inverse of the plan of an encoder, and the second
  /// the plan of the language model. The outputs of the encoder are then sent once instead of
  /// twice. `bytes` is a functor of the index of a sample before `first`, or a range with an
  /// element for each sample.
  ///
  /// Complexity: linear, and logarithmic in the ranks for each sample that changes its rank.
  /// Memory: the result. Determinism: portable. Errors: `std::invalid_argument` if `second` does
  /// not start with the samples of each rank after `first`, or if the number of bytes differs from
  /// the number of samples. It is also thrown if bytes are negative or above 2^63 - 1, or if a node
  /// has no ranks. Further errors: `std::overflow_error` if the sum of the bytes exceeds its type.
  /// Source: OrchMLLM (arXiv 2503.23830, 2025).
  template <detail::index_bytes Bytes>
  [[nodiscard]] exchange_plan operator()(exchange_plan const& first, exchange_plan const& second,
                                         Bytes const& bytes,
                                         placement_options const& options = {}) const {
    compose_workspace workspace;
    (*this)(first, second, bytes, options, workspace);
    return std::move(workspace.result_);
  }

  /// Composes two plans in `workspace`, for a training loop. A call allocates nothing if an earlier
  /// call had plans of at least the same size. The workspace contains the result.
  template <detail::index_bytes Bytes>
  exchange_plan const& operator()(exchange_plan const& first, exchange_plan const& second,
                                  Bytes const& bytes, placement_options const& options,
                                  compose_workspace& workspace) const {
    detail::check_nodes(name, options, second.ranks());
    auto const between = first.arrivals().offsets();
    if (!std::equal(between.begin(), between.end(), second.home_offsets().begin(),
                    second.home_offsets().end())) {
      detail::throw_invalid(name, "the second plan does not start where the first one ends");
    }
    detail::integer_costs<1>& whole = workspace.bytes_;
    detail::measure_bytes_into(name, bytes, first.sample_count(), whole);
    auto const from = first.arrivals().items();
    detail::plan_writer const writer{workspace.result_};
    writer.start(first.home_offsets());
    for (std::size_t rank = 0; rank != second.ranks(); ++rank) {
      for (std::uint32_t const item : second.arrivals(rank)) writer.push(from[item]);
      writer.close();
    }
    writer.finish(detail::given_nodes::of(options),
                  [&](std::uint32_t sample) { return whole[sample][0]; });
    return workspace.result_;
  }

  /// Composes two plans in `workspace` with default options.
  template <detail::index_bytes Bytes>
  exchange_plan const& operator()(exchange_plan const& first, exchange_plan const& second,
                                  Bytes const& bytes, compose_workspace& workspace) const {
    return (*this)(first, second, bytes, {}, workspace);
  }

 private:
  static constexpr std::string_view name = "compose";
};

/// Composes two exchanges into one; see `compose_fn`.
inline constexpr compose_fn compose{};

}  // namespace omnibal::inline v0
