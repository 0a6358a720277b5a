// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The lengths of all samples of a global batch, on every rank.

#include <omnibal/check.hpp>
#include <omnibal/comm/communicator.hpp>
#include <omnibal/comm/ragged.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/detail/agreement.hpp>
#include <omnibal/detail/integer_costs.hpp>
#include <omnibal/detail/padded_gather.hpp>
#include <omnibal/resources.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <ranges>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace omnibal::inline v0 {

struct gather_lengths_options {
  /// The maximum number of samples of a rank, equal on all ranks. If it is set, one collective is
  /// enough for each call after the first call with the same workspace.
  std::optional<std::size_t> max_samples;
};

namespace detail {

/// A functor that returns the `R` lengths of a sample in integers.
template <std::size_t R, class Samples, class Length>
concept lengths_of_kinds = demand_function<Length, sample_reference<Samples>> &&
    integral_measure<demand_result<Length, sample_reference<Samples>>> &&
    (kinds_of<demand_result<Length, sample_reference<Samples>>> == R);

}  // namespace detail

/// The type of the `R` lengths of a sample: a 64-bit integer if there is one length, otherwise
/// resources of 64-bit integers.
template <std::size_t R>
using lengths_of_sample = std::conditional_t<R == 1, std::int64_t, resources<R>>;

/// The memory of `gather_lengths`, its last result, and the value of `max_samples` on which the
/// ranks have agreed. Keep one workspace from step to step for each communicator. All ranks must
/// use their workspaces in the same calls.
template <std::size_t R = 1>
class gather_lengths_workspace {
 public:
  /// Returns the result of the last call.
  [[nodiscard]] ragged<lengths_of_sample<R>> const& result() const& { return result_; }
  void result() const&& = delete;

 private:
  friend struct gather_lengths_fn;

  std::vector<lengths_of_sample<R>> own_;
  std::vector<std::uint64_t> counts_;
  /// The `max_samples` of the last call with that option, on which all ranks have agreed.
  std::size_t most_ = 0;
  std::vector<std::byte> block_;
  detail::agreement<std::uint64_t> agreement_;
  detail::padded_gather gather_;
  ragged<lengths_of_sample<R>> result_;
};

struct gather_lengths_fn {
 private:
  template <class Samples, class Length>
  static constexpr std::size_t kinds =
      detail::kinds_of<demand_result<Length, sample_reference<Samples>>>;

 public:
  /// Gathers the lengths of the samples of all ranks. The result has a row for each rank. `length`
  /// measures a sample. It returns one integer, or resources if a sample has several lengths, such
  /// as tokens of images and of text. Ranks may have different numbers of samples, or none.
  /// `make_plan` accepts the offsets of the result.
  ///
  /// A collective call. Complexity: one collective if `options.max_samples` is set and equals the
  /// value of the last call with the workspace; the blocks are padded to that number. Otherwise two
  /// collectives: the counts, and then blocks padded to the largest count or to the new number.
  /// Memory: the result, the padded blocks, 32 bytes per rank and 16R per sample of this rank.
  /// Determinism: portable. Errors on all ranks: `std::invalid_argument` if `options.max_samples`
  /// differs between ranks. Errors of one rank: `std::invalid_argument` if the rank has more
  /// samples than `options.max_samples` or a length is negative or above 2^63 - 1, and any
  /// exception of `length`. The other ranks then throw `communication_error`.
  template <communicator Comm, sample_range Samples, class Length = std::identity>
    requires demand_function<Length, sample_reference<Samples>> &&
        integral_measure<demand_result<Length, sample_reference<Samples>>>
  [[nodiscard]] auto operator()(Comm&& comm, Samples const& local, Length const& length = {},
                                gather_lengths_options const& options = {}) const {
    gather_lengths_workspace<kinds<Samples, Length>> workspace;
    (*this)(comm, local, length, options, workspace);
    return std::move(workspace.result_);
  }

  /// Gathers the lengths into `workspace`, for a training loop. A call allocates nothing if an
  /// earlier call had at least the same number of samples. The workspace contains the result.
  template <communicator Comm, sample_range Samples, class Length>
    requires demand_function<Length, sample_reference<Samples>> &&
        integral_measure<demand_result<Length, sample_reference<Samples>>>
  auto const& operator()(Comm&& comm, Samples const& local, Length const& length,
                         gather_lengths_options const& options,
                         gather_lengths_workspace<kinds<Samples, Length>>& workspace) const {
    auto const measured = [&] { measure(local, length, options, workspace.own_); };
    if (options.max_samples) {
      gather_at_once(comm, measured, *options.max_samples, workspace);
    } else {
      gather_counts_first(comm, measured, workspace);
    }
    return workspace.result_;
  }

  /// Gathers the lengths into `workspace` with default options.
  template <communicator Comm, sample_range Samples, class Length, std::size_t R>
    requires detail::lengths_of_kinds<R, Samples, Length>
  auto const& operator()(Comm&& comm, Samples const& local, Length const& length,
                         gather_lengths_workspace<R>& workspace) const {
    return (*this)(comm, local, length, {}, workspace);
  }

  /// Gathers samples that are their own lengths into `workspace`.
  template <communicator Comm, sample_range Samples, std::size_t R>
    requires detail::lengths_of_kinds<R, Samples, std::identity>
  auto const& operator()(Comm&& comm, Samples const& local,
                         gather_lengths_workspace<R>& workspace) const {
    return (*this)(comm, local, std::identity{}, {}, workspace);
  }

 private:
  static constexpr std::string_view name = "gather_lengths";

  /// Measures the lengths of the local samples.
  template <class Samples, class Length, class Result>
  static void measure(Samples const& local, Length const& length,
                      gather_lengths_options const& options, std::vector<Result>& result) {
    std::size_t const count = std::ranges::size(local);
    if (options.max_samples && count > *options.max_samples) {
      detail::throw_invalid(name, "there are ", count,
                            " samples, more than options.max_samples, which is ",
                            *options.max_samples);
    }
    result.clear();
    result.reserve(count);
    for (auto&& sample : local) {
      result.push_back(checked_lengths<Result>(std::invoke(length, sample), result.size()));
    }
  }

  template <class Result, class Lengths>
  [[nodiscard]] static Result checked_lengths(Lengths const& lengths, std::size_t index) {
    auto const checked = detail::checked_costs<std::int64_t>(name, "length", index, lengths);
    if constexpr (scalar_measure<Result>) {
      return checked[0];
    } else {
      return checked;
    }
  }

  template <class Comm, class Measured, class Workspace>
  static void gather_counts_first(Comm& comm, Measured const& measured, Workspace& workspace) {
    using own_type = typename decltype(workspace.own_)::value_type;
    auto const reports =
        workspace.agreement_.run({name, "collective calls"}, comm, [&](auto& report) {
          measured();
          report.facts = workspace.own_.size();
        });
    workspace.counts_.clear();
    for (auto const& report : reports) workspace.counts_.push_back(report.facts);
    workspace.gather_.run(comm, std::span<own_type const>(workspace.own_), workspace.counts_,
                          workspace.result_);
  }

  /// Gathers with one collective: each rank sends a report and its lengths, in blocks of the size
  /// of the last call. If the reports contain another `max_samples` than the last call, all ranks
  /// gather again in blocks of the new size.
  template <class Comm, class Measured, class Workspace>
  static void gather_at_once(Comm& comm, Measured const& measured, std::size_t most,
                             Workspace& workspace) {
    bool is_known = false;
    for (bool is_measured = false; !is_known; is_measured = true) {
      workspace.agreement_.start(comm, [&](auto& report) {
        detail::check_number(name, "options.max_samples", most);
        if (!is_measured) measured();
        report.facts = workspace.own_.size();
        report.digest = most;
      });
      is_known = most == workspace.most_;
      auto const blocks = gather_blocks(comm, is_known, workspace);
      workspace.agreement_.finish({name, "options.max_samples", true}, comm);
      workspace.most_ = most;
      if (is_known) read_blocks(blocks, workspace);
    }
  }

  /// Gathers the blocks of all ranks, and passes the reports in them to the agreement.
  template <class Comm, class Workspace>
  [[nodiscard]] static std::span<std::byte const> gather_blocks(Comm& comm, bool has_lengths,
                                                                Workspace& workspace) {
    auto const reports = workspace.agreement_.reports();
    auto lengths = std::as_bytes(std::span(workspace.own_));
    if (!has_lengths || workspace.agreement_.has_failed()) lengths = {};
    auto const report = std::as_bytes(reports.subspan(detail::own_rank(comm), 1));
    std::size_t const room = workspace.most_ * sizeof(workspace.own_[0]);
    workspace.block_.resize(report.size() + lengths.size());
    auto const rest = std::copy(report.begin(), report.end(), workspace.block_.begin());
    std::copy(lengths.begin(), lengths.end(), rest);
    auto const blocks = workspace.gather_.gather(comm, workspace.block_, report.size() + room);
    for (std::size_t rank = 0; rank != reports.size(); ++rank) {
      std::memcpy(&reports[rank], &blocks[rank * (report.size() + room)], report.size());
    }
    return blocks;
  }

  template <class Workspace>
  static void read_blocks(std::span<std::byte const> blocks, Workspace& workspace) {
    auto const reports = workspace.agreement_.reports();
    workspace.counts_.clear();
    for (auto const& report : reports) workspace.counts_.push_back(report.facts);
    workspace.result_.shape(workspace.counts_);
    detail::padded_gather::read(blocks, sizeof(reports[0]), workspace.result_);
  }
};

/// Gathers the lengths of all samples of a global batch on every rank; see `gather_lengths_fn`.
inline constexpr gather_lengths_fn gather_lengths{};

}  // namespace omnibal::inline v0
