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
  /// The most samples of a rank, equal on all ranks. Where it is known one collective is enough,
  /// from the second call with a workspace on.
  std::optional<std::size_t> most_samples;
};

namespace detail {

/// `Length` gives the lengths of a sample, `R` of them, in integers.
template <std::size_t R, class Samples, class Length>
concept lengths_of_kinds = demand_function<Length, sample_reference<Samples>> &&
    integral_amount<demand_result<Length, sample_reference<Samples>>> &&
    (kinds_of<demand_result<Length, sample_reference<Samples>>> == R);

}  // namespace detail

/// One or several lengths of a sample: a 64-bit integer, or resources of them.
template <std::size_t R>
using lengths_of_sample = std::conditional_t<R == 1, std::int64_t, resources<R>>;

/// Memory of `gather_lengths`, its last result, and on how many samples the ranks have agreed. To
/// be kept from step to step, for one communicator and on all of its ranks alike.
template <std::size_t R = 1>
class gather_lengths_workspace {
 public:
  /// The result of the last call.
  [[nodiscard]] ragged<lengths_of_sample<R>> const& result() const& { return result_; }
  void result() const&& = delete;

 private:
  friend struct gather_lengths_fn;

  std::vector<lengths_of_sample<R>> own_;
  std::vector<std::uint64_t> counts_;
  /// The `most_samples` of the last call that gave it, on which all ranks have agreed.
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
  /// The lengths of the samples of all ranks, a row for each rank. `length` measures a sample: one
  /// integer, or resources where a sample has several lengths, such as tokens of images and of
  /// text. Ranks may have different numbers of samples, also none; the offsets of the result are
  /// what `make_plan` takes.
  ///
  /// A collective call. Complexity: one collective where `options.most_samples` is given and is
  /// that of the last call with the workspace, whose blocks are padded to it; else two, the counts
  /// and blocks that are padded to the largest or to the new number. Memory: the result, the padded
  /// blocks, 32 bytes per rank and 16R per sample of this rank. Determinism: portable. Errors on
  /// all ranks: `std::invalid_argument` for different `options.most_samples`; where a rank has
  /// more, where a length is negative or above 2^63 - 1 and where `length` throws, there it is
  /// `std::invalid_argument` or what was thrown, and elsewhere `communication_error`.
  template <communicator Comm, sample_range Samples, class Length = std::identity>
    requires demand_function<Length, sample_reference<Samples>> &&
        integral_amount<demand_result<Length, sample_reference<Samples>>>
  [[nodiscard]] auto operator()(Comm&& comm, Samples const& local, Length const& length = {},
                                gather_lengths_options const& options = {}) const {
    gather_lengths_workspace<kinds<Samples, Length>> workspace;
    (*this)(comm, local, length, options, workspace);
    return std::move(workspace.result_);
  }

  /// The same in memory that is kept, for a training loop: once the workspace has seen the largest
  /// number of samples, nothing is allocated. The result lies in the workspace.
  template <communicator Comm, sample_range Samples, class Length>
    requires demand_function<Length, sample_reference<Samples>> &&
        integral_amount<demand_result<Length, sample_reference<Samples>>>
  auto const& operator()(Comm&& comm, Samples const& local, Length const& length,
                         gather_lengths_options const& options,
                         gather_lengths_workspace<kinds<Samples, Length>>& workspace) const {
    auto const measured = [&] { measure(local, length, options, workspace.own_); };
    if (options.most_samples) {
      gather_at_once(comm, measured, *options.most_samples, workspace);
    } else {
      gather_counts_first(comm, measured, workspace);
    }
    return workspace.result_;
  }

  /// The same with default options.
  template <communicator Comm, sample_range Samples, class Length, std::size_t R>
    requires detail::lengths_of_kinds<R, Samples, Length>
  auto const& operator()(Comm&& comm, Samples const& local, Length const& length,
                         gather_lengths_workspace<R>& workspace) const {
    return (*this)(comm, local, length, {}, workspace);
  }

  /// The same for samples that are their lengths.
  template <communicator Comm, sample_range Samples, std::size_t R>
    requires detail::lengths_of_kinds<R, Samples, std::identity>
  auto const& operator()(Comm&& comm, Samples const& local,
                         gather_lengths_workspace<R>& workspace) const {
    return (*this)(comm, local, std::identity{}, {}, workspace);
  }

 private:
  static constexpr std::string_view name = "gather_lengths";

  /// The lengths of the local samples.
  template <class Samples, class Length, class Result>
  static void measure(Samples const& local, Length const& length,
                      gather_lengths_options const& options, std::vector<Result>& result) {
    std::size_t const count = std::ranges::size(local);
    if (options.most_samples && count > *options.most_samples) {
      detail::throw_invalid(name, "there are " + detail::to_text(count) +
                                      " samples, more than options.most_samples, which is " +
                                      detail::to_text(*options.most_samples));
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
    if constexpr (weight<Result>) {
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

  /// Each rank gives a report and then its lengths, in as much room as all had the last time. Where
  /// they give another number, of which they know each other then, all come again in that room.
  template <class Comm, class Measured, class Workspace>
  static void gather_at_once(Comm& comm, Measured const& measured, std::size_t most,
                             Workspace& workspace) {
    bool is_known = false;
    for (bool is_measured = false; !is_known; is_measured = true) {
      workspace.agreement_.start(comm, [&](auto& report) {
        detail::check_number(name, "options.most_samples", most);
        if (!is_measured) measured();
        report.facts = workspace.own_.size();
        report.digest = most;
      });
      is_known = most == workspace.most_;
      auto const blocks = gather_blocks(comm, is_known, workspace);
      workspace.agreement_.finish({name, "options.most_samples", true}, comm);
      workspace.most_ = most;
      if (is_known) read_blocks(blocks, workspace);
    }
  }

  /// The blocks of all ranks; their reports go to the agreement.
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

/// The lengths of all samples of a global batch; see `gather_lengths_fn`.
inline constexpr gather_lengths_fn gather_lengths{};

}  // namespace omnibal::inline v0
