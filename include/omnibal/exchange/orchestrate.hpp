// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Plans for several phases that all ranks agree on.

#include <omnibal/balance/index_measure.hpp>
#include <omnibal/balance/rebalance.hpp>
#include <omnibal/comm/communicator.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/detail/agreement.hpp>
#include <omnibal/detail/data_digest.hpp>
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
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

namespace omnibal::inline v0 {

namespace detail {

/// A phase whose functors measure an item, which is a sample or a piece, and whose balancer accepts
/// the costs.
template <class Phase, class Item>
concept phase_of = requires(Phase const& phase) {
  requires demand_function<decltype(phase.cost), Item>;
  requires bytes_function<decltype(phase.bytes), Item>;
  requires amount_balancer<decltype(phase.balance), demand_result<decltype(phase.cost), Item>>;
};

template <class Pieces, class Sample>
using piece_reference = std::ranges::range_reference_t<std::invoke_result_t<Pieces const&, Sample>>;

template <class Phase, class Sample>
concept encoder_of = requires(Phase const& phase) {
  requires std::regular_invocable<decltype((phase.pieces)), Sample>;
  requires std::ranges::input_range<std::invoke_result_t<decltype((phase.pieces)), Sample>>;
  requires phase_of<Phase, piece_reference<decltype(phase.pieces), Sample>>;
  requires bytes_function<decltype(phase.output_bytes),
                          piece_reference<decltype(phase.pieces), Sample>>;
};

/// The cost type of a sample or a piece.
template <class Phase, class Item>
using phase_cost = demand_result<decltype(Phase::cost), Item>;
template <class Phase, class Sample>
using encoder_cost = phase_cost<Phase, piece_reference<decltype(Phase::pieces), Sample>>;

}  // namespace detail

/// Memory of `orchestrate` for a language model and `Encoders` encoders, and its last result. Use
/// the same workspace in all steps.
template <std::size_t Encoders>
class orchestrate_workspace {
 public:
  /// Returns the result of the last call.
  [[nodiscard]] orchestration const& result() const& { return planner_.result(); }
  void result() const&& = delete;

 private:
  friend struct orchestrate_fn;

  detail::phase_gather<1 + Encoders> phases_;
  /// The names of the encoders in error texts.
  std::array<std::string, Encoders> names_;
  detail::agreement<detail::phase_facts> on_arguments_;
  detail::agreement<std::uint64_t> on_plans_;
  make_orchestration_workspace planner_;
};

struct orchestrate_fn {
  /// Plans all phases as `make_orchestration`, for the samples of all ranks; the result is equal on
  /// all ranks. `local` contains the samples of this rank. The argument `language` is a
  /// `language_phase`, and `encoders` is a tuple of any number of `encoder_phase`. Their functors
  /// are called only for local samples, in order. Costs are integers, floating-point numbers or
  /// resources, and may differ between phases. The owner of a sample maps floating-point costs to
  /// integers as in `plan_exchange`, separately for each phase and kind. Bytes are integers. The
  /// function accepts the balancers of `make_orchestration`.
  ///
  /// A collective call of three collectives. The first checks that all ranks can continue with the
  /// same options. The second gathers the measures in blocks that are padded to the rank with the
  /// most measures. The third checks that all ranks have the same plans. Complexity and memory: the
  /// same as `make_orchestration`, plus 24 bytes per sample and 40 bytes per piece of all ranks.
  /// Determinism: portable. Errors on all ranks if there is an error on any rank, as in
  /// `plan_exchange`; errors of costs and bytes name the phase.
  template <communicator Comm, sample_range Samples,
            detail::phase_of<sample_reference<Samples>> Language,
            detail::encoder_of<sample_reference<Samples>>... Encoders>
  [[nodiscard]] orchestration operator()(Comm&& comm, Samples const& local,
                                         Language const& language,
                                         std::tuple<Encoders...> const& encoders,
                                         make_plan_options const& options = {}) const {
    orchestrate_workspace<sizeof...(Encoders)> workspace;
    return (*this)(comm, local, language, encoders, options, workspace);
  }

  /// Plans all phases in `workspace`, for a training loop. With `rebalance` and costs of one kind,
  /// a call allocates only if it requires more memory than all earlier calls. The workspace
  /// contains the result.
  template <communicator Comm, sample_range Samples,
            detail::phase_of<sample_reference<Samples>> Language,
            detail::encoder_of<sample_reference<Samples>>... Encoders>
  orchestration const& operator()(Comm&& comm, Samples const& local, Language const& language,
                                  std::tuple<Encoders...> const& encoders,
                                  make_plan_options const& options,
                                  orchestrate_workspace<sizeof...(Encoders)>& workspace) const {
    using language_cost = detail::phase_cost<Language, sample_reference<Samples>>;
    auto const reports = workspace.on_arguments_.run({name, "options"}, comm, [&](auto& report) {
      detail::check_exchange_options(name, options, detail::rank_count(comm));
      auto& phases = workspace.phases_;
      phases.clear();
      phases.own[0].measure("orchestrate, language model", local, language.cost, language.bytes);
      detail::data_digest shapes;
      shapes.add(detail::shape_of_cost<language_cost>);
      detail::for_each_encoder(encoders, [&]<class Encoder>(Encoder const& encoder, std::size_t e) {
        using cost = detail::encoder_cost<Encoder, sample_reference<Samples>>;
        phases.own[e + 1].kinds = detail::kinds_of<cost>;
        workspace.names_[e].assign(name).append(", encoder ").append(detail::to_text(e));
        measure_encoder(workspace.names_[e], local, encoder, phases.own[e + 1]);
        shapes.add(detail::shape_of_cost<cost>);
      });
      report.digest = detail::digest_of_options(options, shapes.value());
      report.facts = phases.facts(std::ranges::size(local));
    });
    workspace.phases_.run(comm, reports);
    workspace.on_plans_.run({name, "plans"}, comm, [&](auto& report) {
      report.digest = arrange<sample_reference<Samples>>(language, encoders, options, workspace,
                                                         std::index_sequence_for<Encoders...>{})
                          .digest();
    });
    return workspace.result();
  }

  /// Plans all phases in `workspace` with default options.
  template <communicator Comm, sample_range Samples,
            detail::phase_of<sample_reference<Samples>> Language,
            detail::encoder_of<sample_reference<Samples>>... Encoders>
  orchestration const& operator()(Comm&& comm, Samples const& local, Language const& language,
                                  std::tuple<Encoders...> const& encoders,
                                  orchestrate_workspace<sizeof...(Encoders)>& workspace) const {
    return (*this)(comm, local, language, encoders, {}, workspace);
  }

 private:
  static constexpr std::string_view name = "orchestrate";

  template <class Samples, class Encoder>
  static void measure_encoder(std::string_view called, Samples const& local, Encoder const& encoder,
                              detail::measured_phase& phase) {
    for (auto&& sample : local) {
      std::int64_t count = 0;
      for (auto&& piece : std::invoke(encoder.pieces, sample)) {
        auto const cost = std::invoke(encoder.cost, piece);
        auto const bytes = std::invoke(encoder.bytes, piece);
        phase.push(called, cost, bytes, std::invoke(encoder.output_bytes, piece));
        ++count;
      }
      phase.piece_counts.push_back(count);
    }
  }

  /// Plans from the gathered measures with the balancers of the phases.
  template <class Sample, class Language, class... Encoders, std::size_t... E>
  static orchestration const& arrange(Language const& language,
                                      std::tuple<Encoders...> const& encoders,
                                      make_plan_options const& options,
                                      orchestrate_workspace<sizeof...(Encoders)>& workspace,
                                      std::index_sequence<E...>) {
    auto const& phases = workspace.phases_;
    return make_orchestration_fn::arrange(
        name, phases.offsets,
        language_phase{costs_of<detail::phase_cost<Language, Sample>>(phases.all[0]),
                       std::span(phases.all[0].bytes), language.balance},
        std::tuple{encoder_phase{
            std::span(phases.all[E + 1].piece_counts),
            costs_of<detail::encoder_cost<Encoders, Sample>>(phases.all[E + 1]),
            std::span(phases.all[E + 1].bytes), std::span(phases.all[E + 1].output_bytes),
            std::get<E>(encoders).balance}...},
        options, workspace.planner_);
  }

  template <class Cost>
  [[nodiscard]] static detail::cost_column<detail::kinds_of<Cost>> costs_of(
      detail::phase_columns const& columns) {
    return {columns.costs};
  }
};

/// Plans several phases of a model such that all ranks agree; see `orchestrate_fn`.
inline constexpr orchestrate_fn orchestrate{};

}  // namespace omnibal::inline v0
