#pragma once

/// \file
/// Arrangements of several phases that all ranks agree on.

#include <omnibal/balance/keep_home.hpp>
#include <omnibal/comm/all_gather_v.hpp>
#include <omnibal/comm/communicator.hpp>
#include <omnibal/comm/detail/agreement.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/exchange/detail/measured_bytes.hpp>
#include <omnibal/exchange/detail/options_digest.hpp>
#include <omnibal/exchange/detail/phase_columns.hpp>
#include <omnibal/exchange/exchange_options.hpp>
#include <omnibal/exchange/make_orchestration.hpp>
#include <omnibal/exchange/make_plan.hpp>

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

struct orchestrate_fn {
  /// The arrangements of `make_orchestration` for the samples of all ranks, of which `local` are
  /// those of this one; equal on all ranks. `language` is a `language_phase`, `encoders` a tuple of
  /// any number of `encoder_phase`. Their functors are called for local samples only, in order.
  /// Costs are integers, or floating-point numbers that the owner maps to integers as in
  /// `plan_exchange`, each phase by itself; bytes are integers.
  ///
  /// A collective call of four collectives: whether all ranks can go on and with the same options,
  /// two for the measures, and whether all have the same plans. Complexity and memory: those of
  /// `make_orchestration`, and 16 bytes per sample and 24 per piece, twice. Determinism: portable.
  /// Errors on all ranks where there is one on any, as in `plan_exchange`.
  template <communicator Comm, sample_range Samples,
            detail::language_of<sample_reference<Samples>> Language,
            detail::encoder_of<sample_reference<Samples>>... Encoders,
            plan_balancer<std::span<std::int64_t const>> Balance = keep_home_fn>
  [[nodiscard]] orchestration operator()(Comm&& comm, Samples const& local,
                                         Language const& language,
                                         std::tuple<Encoders...> const& encoders,
                                         exchange_options const& options = {},
                                         Balance const& balance = keep_home) const {
    constexpr std::size_t phases = 1 + sizeof...(Encoders);
    std::array<detail::phase_columns, phases> own;
    detail::agreement<local_facts<phases>> on_arguments;
    auto const reports = on_arguments.run({name, "options"}, comm, [&](auto& report) {
      detail::check_exchange_options(name, options);
      measure_language(local, language, own[0]);
      std::size_t next = 1;
      std::apply(
          [&](auto const&... encoder) { (measure_encoder(local, encoder, own[next++]), ...); },
          encoders);
      report.digest = detail::digest_of_options(options, phases);
      report.facts.samples = std::ranges::size(local);
      for (std::size_t p = 0; p != phases; ++p) {
        report.facts.largest[p] = own[p].largest_floating_cost();
      }
    });
    quantise(reports, own);
    auto const all = gather(comm, reports, own);
    orchestration result;
    detail::agreement<std::uint64_t>().run({name, "plans"}, comm, [&](auto& report) {
      result = arrange(reports, all, options, balance);
      report.digest = result.digest();
    });
    return result;
  }

 private:
  static constexpr std::string_view name = "orchestrate";

  template <std::size_t Phases>
  struct local_facts {
    std::uint64_t samples = 0;
    /// The largest cost of each phase, where costs are floating-point numbers.
    std::array<double, Phases> largest{};
  };

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
  template <class Comm, class Reports, std::size_t Phases>
  [[nodiscard]] static std::array<detail::phase_columns, Phases> gather(
      Comm& comm, Reports const& reports, std::array<detail::phase_columns, Phases> const& own) {
    std::vector<std::int64_t> words;
    for (detail::phase_columns const& columns : own) columns.write(words);
    auto const rows = all_gather_v(comm, words);
    std::array<detail::phase_columns, Phases> all;
    for (std::size_t rank = 0; rank != rows.size(); ++rank) {
      std::span<std::int64_t const> row = rows[rank];
      std::size_t const samples = reports[rank].facts.samples;
      all[0].read_language(row, samples);
      for (std::size_t p = 1; p != Phases; ++p) all[p].read_encoder(row, samples);
    }
    return all;
  }

  template <class Reports, std::size_t Phases, class Balance>
  [[nodiscard]] static orchestration arrange(Reports const& reports,
                                             std::array<detail::phase_columns, Phases> const& all,
                                             exchange_options const& options,
                                             Balance const& balance) {
    std::vector<std::uint64_t> offsets{0};
    for (auto const& report : reports) offsets.push_back(offsets.back() + report.facts.samples);
    std::array<std::vector<std::uint32_t>, Phases> piece_counts;
    std::vector<encoder_measures> encoders;
    for (std::size_t p = 1; p != Phases; ++p) {
      for (std::int64_t const count : all[p].piece_counts) {
        piece_counts[p].push_back(static_cast<std::uint32_t>(count));
      }
      encoders.push_back({piece_counts[p], all[p].costs, all[p].bytes, all[p].output_bytes});
    }
    return make_orchestration(offsets, {all[0].costs, all[0].bytes}, encoders, options, balance);
  }
};

/// Arrangements of several phases that all ranks agree on; see `orchestrate_fn`.
inline constexpr orchestrate_fn orchestrate{};

}  // namespace omnibal::inline v0
