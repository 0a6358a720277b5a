#pragma once

/// \file
/// Arrangements of several phases that all ranks agree on.

#include <omnibal/balance/keep_home.hpp>
#include <omnibal/comm/communicator.hpp>
#include <omnibal/comm/ragged.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/detail/agreement.hpp>
#include <omnibal/detail/integer_costs.hpp>
#include <omnibal/detail/padded_gather.hpp>
#include <omnibal/exchange/detail/plan_arguments.hpp>
#include <omnibal/exchange/make_orchestration.hpp>
#include <omnibal/exchange/make_plan.hpp>
#include <omnibal/exchange/make_plan_options.hpp>

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <ranges>
#include <span>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace omnibal::inline v0 {

namespace detail {

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
    fixed_point const to_share = cost_shares(largest);
    for (double const cost : floating_costs) costs.push_back(to_share(cost));
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

}  // namespace detail

/// The language model: what a sample costs there, and the bytes of its text.
template <class Cost, class Bytes>
struct language_phase {
  Cost cost;
  Bytes bytes;
};
template <class Cost, class Bytes>
language_phase(Cost, Bytes) -> language_phase<Cost, Bytes>;

/// An encoder: the pieces of a sample, a range that may be empty; what a piece costs, its bytes,
/// and the bytes of what the encoder makes of it.
template <class Pieces, class Cost, class Bytes, class OutputBytes>
struct encoder_phase {
  Pieces pieces;
  Cost cost;
  Bytes bytes;
  OutputBytes output_bytes;
};
template <class Pieces, class Cost, class Bytes, class OutputBytes>
encoder_phase(Pieces, Cost, Bytes, OutputBytes) -> encoder_phase<Pieces, Cost, Bytes, OutputBytes>;

namespace detail {

template <class Phase, class Sample>
concept language_of = requires(Phase const& phase) {
  requires cost_function<decltype(phase.cost), Sample>;
  requires bytes_function<decltype(phase.bytes), Sample>;
};

template <class Pieces, class Sample>
using piece_reference = std::ranges::range_reference_t<std::invoke_result_t<Pieces const&, Sample>>;

template <class Phase, class Sample>
concept encoder_of = requires(Phase const& phase) {
  requires std::regular_invocable<decltype((phase.pieces)), Sample>;
  requires std::ranges::input_range<std::invoke_result_t<decltype((phase.pieces)), Sample>>;
  requires cost_function<decltype(phase.cost), piece_reference<decltype(phase.pieces), Sample>>;
  requires bytes_function<decltype(phase.bytes), piece_reference<decltype(phase.pieces), Sample>>;
  requires bytes_function<decltype(phase.output_bytes),
                          piece_reference<decltype(phase.pieces), Sample>>;
};

}  // namespace detail

/// Memory of `orchestrate` for a language model and `Encoders` encoders, and its last result. To be
/// kept from step to step.
template <std::size_t Encoders>
class orchestrate_workspace {
 public:
  /// The result of the last call.
  [[nodiscard]] orchestration const& result() const& { return planner_.result(); }
  void result() const&& = delete;

 private:
  friend struct orchestrate_fn;

  static constexpr std::size_t phases = 1 + Encoders;

  /// What a rank says of its samples before it sends their measures.
  struct local_facts {
    std::uint64_t samples = 0;
    std::uint64_t words = 0;
    /// The largest cost of each phase, where costs are floating-point numbers.
    std::array<double, phases> largest{};
  };

  std::array<detail::phase_columns, phases> own_;
  std::array<detail::phase_columns, phases> all_;
  std::vector<std::int64_t> words_;
  std::vector<std::uint64_t> counts_;
  ragged<std::int64_t> rows_;
  std::vector<std::uint64_t> offsets_;
  std::array<std::vector<std::uint32_t>, Encoders> piece_counts_;
  detail::agreement<local_facts> on_arguments_;
  detail::agreement<std::uint64_t> on_plans_;
  detail::padded_gather gather_;
  make_orchestration_workspace planner_;
};

struct orchestrate_fn {
  /// The arrangements of `make_orchestration` for the samples of all ranks, of which `local` are
  /// those of this one; equal on all ranks. `language` is a `language_phase`, `encoders` a tuple of
  /// any number of `encoder_phase`. Their functors are called for local samples only, in order.
  /// Costs are integers, or floating-point numbers that the owner maps to integers as in
  /// `plan_exchange`, each phase by itself; bytes are integers.
  ///
  /// A collective call of three collectives: whether all ranks can go on and with the same options,
  /// the measures in blocks padded to the rank with the most, and whether all have the same plans.
  /// Complexity and memory: those of `make_orchestration`, and 24 bytes per sample and 40 per piece
  /// of all ranks. Determinism: portable. Errors on all ranks where there is one on any, as in
  /// `plan_exchange`.
  template <communicator Comm, sample_range Samples,
            detail::language_of<sample_reference<Samples>> Language,
            detail::encoder_of<sample_reference<Samples>>... Encoders,
            plan_balancer<std::span<std::int64_t const>> Balance = keep_home_fn>
  [[nodiscard]] orchestration operator()(Comm&& comm, Samples const& local,
                                         Language const& language,
                                         std::tuple<Encoders...> const& encoders,
                                         make_plan_options const& options = {},
                                         Balance const& balance = keep_home) const {
    orchestrate_workspace<sizeof...(Encoders)> workspace;
    return (*this)(comm, local, language, encoders, options, balance, workspace);
  }

  /// The same in memory that is kept, for a training loop: with `keep_home` a call allocates only
  /// where it needs more than all calls before it. The result lies in the workspace.
  template <communicator Comm, sample_range Samples,
            detail::language_of<sample_reference<Samples>> Language,
            detail::encoder_of<sample_reference<Samples>>... Encoders,
            plan_balancer<std::span<std::int64_t const>> Balance>
  orchestration const& operator()(Comm&& comm, Samples const& local, Language const& language,
                                  std::tuple<Encoders...> const& encoders,
                                  make_plan_options const& options, Balance const& balance,
                                  orchestrate_workspace<sizeof...(Encoders)>& workspace) const {
    auto const reports = workspace.on_arguments_.run({name, "options"}, comm, [&](auto& report) {
      detail::check_exchange_options(name, options);
      for (detail::phase_columns& columns : workspace.own_) columns.clear();
      measure_language(local, language, workspace.own_[0]);
      std::size_t next = 1;
      std::apply(
          [&](auto const&... encoder) {
            (measure_encoder(local, encoder, workspace.own_[next++]), ...);
          },
          encoders);
      report.digest = detail::digest_of_options(options, workspace.own_.size());
      report.facts.samples = std::ranges::size(local);
      for (std::size_t p = 0; p != workspace.own_.size(); ++p) {
        report.facts.words += workspace.own_[p].word_count();
        report.facts.largest[p] = workspace.own_[p].largest_floating_cost();
      }
    });
    quantise(reports, workspace.own_);
    gather(comm, reports, workspace);
    workspace.on_plans_.run({name, "plans"}, comm, [&](auto& report) {
      report.digest = arrange(reports, options, balance, workspace).digest();
    });
    return workspace.result();
  }

  /// The same with `keep_home`.
  template <communicator Comm, sample_range Samples,
            detail::language_of<sample_reference<Samples>> Language,
            detail::encoder_of<sample_reference<Samples>>... Encoders>
  orchestration const& operator()(Comm&& comm, Samples const& local, Language const& language,
                                  std::tuple<Encoders...> const& encoders,
                                  make_plan_options const& options,
                                  orchestrate_workspace<sizeof...(Encoders)>& workspace) const {
    return (*this)(comm, local, language, encoders, options, keep_home, workspace);
  }

  /// The same with the options as they are.
  template <communicator Comm, sample_range Samples,
            detail::language_of<sample_reference<Samples>> Language,
            detail::encoder_of<sample_reference<Samples>>... Encoders>
  orchestration const& operator()(Comm&& comm, Samples const& local, Language const& language,
                                  std::tuple<Encoders...> const& encoders,
                                  orchestrate_workspace<sizeof...(Encoders)>& workspace) const {
    return (*this)(comm, local, language, encoders, {}, keep_home, workspace);
  }

 private:
  static constexpr std::string_view name = "orchestrate";

  template <class Samples, class Language>
  static void measure_language(Samples const& local, Language const& language,
                               detail::phase_columns& columns) {
    for (auto&& sample : local) {
      columns.push(name, std::invoke(language.cost, sample), std::invoke(language.bytes, sample));
    }
  }

  template <class Samples, class Encoder>
  static void measure_encoder(Samples const& local, Encoder const& encoder,
                              detail::phase_columns& columns) {
    for (auto&& sample : local) {
      std::int64_t count = 0;
      for (auto&& piece : std::invoke(encoder.pieces, sample)) {
        columns.push(name, std::invoke(encoder.cost, piece), std::invoke(encoder.bytes, piece));
        columns.push_output(name, std::invoke(encoder.output_bytes, piece));
        ++count;
      }
      columns.piece_counts.push_back(count);
    }
  }

  template <class Reports, std::size_t Phases>
  static void quantise(Reports const& reports, std::array<detail::phase_columns, Phases>& own) {
    for (std::size_t p = 0; p != Phases; ++p) {
      double largest = 0.0;
      for (auto const& report : reports) largest = std::max(largest, report.facts.largest[p]);
      own[p].quantise(largest);
    }
  }

  /// The measures of all samples.
  template <class Comm, class Reports, class Workspace>
  static void gather(Comm& comm, Reports const& reports, Workspace& workspace) {
    workspace.words_.clear();
    for (detail::phase_columns const& columns : workspace.own_) columns.write(workspace.words_);
    workspace.counts_.clear();
    for (auto const& report : reports) workspace.counts_.push_back(report.facts.words);
    workspace.gather_.run(comm, std::span<std::int64_t const>(workspace.words_), workspace.counts_,
                          workspace.rows_);
    for (detail::phase_columns& columns : workspace.all_) columns.clear();
    for (std::size_t rank = 0; rank != reports.size(); ++rank) {
      std::span<std::int64_t const> row = std::as_const(workspace.rows_)[rank];
      std::size_t const samples = reports[rank].facts.samples;
      workspace.all_[0].read_language(row, samples);
      for (std::size_t p = 1; p != workspace.all_.size(); ++p) {
        workspace.all_[p].read_encoder(row, samples);
      }
    }
  }

  template <class Reports, class Balance, std::size_t Encoders>
  static orchestration const& arrange(Reports const& reports, make_plan_options const& options,
                                      Balance const& balance,
                                      orchestrate_workspace<Encoders>& workspace) {
    workspace.offsets_.assign(1, 0);
    for (auto const& report : reports) {
      workspace.offsets_.push_back(workspace.offsets_.back() + report.facts.samples);
    }
    std::array<encoder_measures, Encoders> encoders;
    for (std::size_t e = 0; e != Encoders; ++e) {
      detail::phase_columns const& columns = workspace.all_[e + 1];
      std::vector<std::uint32_t>& counts = workspace.piece_counts_[e];
      counts.clear();
      for (std::int64_t const count : columns.piece_counts) {
        counts.push_back(static_cast<std::uint32_t>(count));
      }
      encoders[e] = {counts, columns.costs, columns.bytes, columns.output_bytes};
    }
    detail::phase_columns const& language = workspace.all_[0];
    return make_orchestration(workspace.offsets_, {language.costs, language.bytes}, encoders,
                              options, balance, workspace.planner_);
  }
};

/// Arrangements of several phases that all ranks agree on; see `orchestrate_fn`.
inline constexpr orchestrate_fn orchestrate{};

}  // namespace omnibal::inline v0
