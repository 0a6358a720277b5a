#pragma once

/// \file
/// Arrangements of several phases that all ranks agree on.

#include <omnibal/balance/index_measure.hpp>
#include <omnibal/balance/keep_home.hpp>
#include <omnibal/comm/communicator.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/detail/agreement.hpp>
#include <omnibal/exchange/detail/phase_gather.hpp>
#include <omnibal/exchange/exchange_plan.hpp>
#include <omnibal/exchange/make_orchestration.hpp>
#include <omnibal/exchange/make_plan.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <ranges>
#include <span>
#include <string_view>
#include <tuple>
#include <vector>

namespace omnibal::inline v0 {

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

  detail::phase_gather<1, 1 + Encoders> phases_;
  std::array<std::vector<std::uint32_t>, Encoders> piece_counts_;
  detail::agreement<detail::phase_facts> on_arguments_;
  detail::agreement<std::uint64_t> on_plans_;
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
      auto& phases = workspace.phases_;
      phases.clear();
      measure_language(local, language, phases.own[0]);
      std::size_t next = 1;
      std::apply(
          [&](auto const&... encoder) {
            (measure_encoder(local, encoder, phases.own[next++]), ...);
          },
          encoders);
      report.digest = detail::digest_of_options(options, phases.own.size());
      report.facts = phases.facts(std::ranges::size(local));
    });
    workspace.phases_.run(comm, reports);
    workspace.on_plans_.run({name, "plans"}, comm, [&](auto& report) {
      report.digest = arrange(options, balance, workspace).digest();
    });
    return workspace.result();
  }

 private:
  static constexpr std::string_view name = "orchestrate";

  template <class Samples, class Language>
  static void measure_language(Samples const& local, Language const& language,
                               detail::measured_phase<1>& phase) {
    for (auto&& sample : local) {
      auto const cost = std::invoke(language.cost, sample);
      phase.push(name, cost, std::invoke(language.bytes, sample));
    }
  }

  template <class Samples, class Encoder>
  static void measure_encoder(Samples const& local, Encoder const& encoder,
                              detail::measured_phase<1>& phase) {
    for (auto&& sample : local) {
      std::int64_t count = 0;
      for (auto&& piece : std::invoke(encoder.pieces, sample)) {
        auto const cost = std::invoke(encoder.cost, piece);
        auto const bytes = std::invoke(encoder.bytes, piece);
        phase.push(name, cost, bytes, std::invoke(encoder.output_bytes, piece));
        ++count;
      }
      phase.piece_counts.push_back(count);
    }
  }

  template <class Balance, std::size_t Encoders>
  static orchestration const& arrange(make_plan_options const& options, Balance const& balance,
                                      orchestrate_workspace<Encoders>& workspace) {
    auto const& phases = workspace.phases_;
    std::array<encoder_measures, Encoders> encoders;
    for (std::size_t e = 0; e != Encoders; ++e) {
      auto const& columns = phases.all[e + 1];
      std::vector<std::uint32_t>& counts = workspace.piece_counts_[e];
      counts.clear();
      for (std::int64_t const count : columns.piece_counts) {
        counts.push_back(static_cast<std::uint32_t>(count));
      }
      encoders[e] = {counts, columns.costs, columns.bytes, columns.output_bytes};
    }
    auto const& language = phases.all[0];
    return make_orchestration_fn::arrange(name, phases.offsets, {language.costs, language.bytes},
                                          encoders, options, balance, workspace.planner_);
  }
};

/// Arrangements of several phases that all ranks agree on; see `orchestrate_fn`.
inline constexpr orchestrate_fn orchestrate{};

}  // namespace omnibal::inline v0
