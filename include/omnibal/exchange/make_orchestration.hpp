// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Plans for phases of a multimodal model: encoders and a language model.

#include <omnibal/balance/rebalance.hpp>
#include <omnibal/check.hpp>
#include <omnibal/detail/agreement.hpp>
#include <omnibal/detail/data_digest.hpp>
#include <omnibal/exchange/exchange_plan.hpp>
#include <omnibal/exchange/make_plan.hpp>

#include <cstddef>
#include <cstdint>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace omnibal::inline v0 {

namespace detail {

/// Returns the balancer of a phase that is constructed without a balancer.
template <class Balance>
[[nodiscard]] Balance default_balancer() {
  return Balance();
}

}  // namespace detail

/// The phase of the language model: the cost of a sample, the bytes of its text, and the balancer.
/// `orchestrate` accepts functors of a sample. The function `make_orchestration` accepts arrays
/// with an element for each sample of all ranks: 64-bit integers, or resources as costs. The phase
/// owns its arguments; the elements of a `std::span` are not copied.
template <class Cost, class Bytes, class Balance = rebalance_fn>
struct language_phase {
  Cost cost;
  Bytes bytes;
  Balance balance = detail::default_balancer<Balance>();
};
template <class Cost, class Bytes, class Balance = rebalance_fn>
language_phase(Cost, Bytes, Balance = {}) -> language_phase<Cost, Bytes, Balance>;

/// The phase of an encoder: the pieces of a sample, such as images, the cost, bytes and output
/// bytes of a piece, and the balancer. A sample has any number of pieces, or none. For
/// `orchestrate` the pieces of a sample are a range. For `make_orchestration` they are the number
/// of pieces of each sample; the other measures have an element for each piece, in the order of the
/// pieces in the samples.
template <class Pieces, class Cost, class Bytes, class OutputBytes, class Balance = rebalance_fn>
struct encoder_phase {
  Pieces pieces;
  Cost cost;
  Bytes bytes;
  OutputBytes output_bytes;
  Balance balance = detail::default_balancer<Balance>();
};
template <class Pieces, class Cost, class Bytes, class OutputBytes, class Balance = rebalance_fn>
encoder_phase(Pieces, Cost, Bytes, OutputBytes, Balance = {})
    -> encoder_phase<Pieces, Cost, Bytes, OutputBytes, Balance>;

namespace detail {

using number_array = std::span<std::int64_t const>;

/// Calls `f` with each element of a tuple or a range, and its number.
template <class Encoders, class F>
void for_each_encoder(Encoders const& encoders, F const& f) {
  std::size_t number = 0;
  if constexpr (std::ranges::range<Encoders const>) {
    for (auto const& encoder : encoders) f(encoder, number++);
  } else {
    std::apply([&](auto const&... encoder) { (f(encoder, number++), ...); }, encoders);
  }
}

}  // namespace detail

/// The routes of the pieces of one encoder.
struct encoder_routes {
  /// From the ranks of the samples to the ranks that encode their pieces.
  exchange_plan inputs;
  /// From the encoding ranks to the ranks that have the samples in the language model. The inverse
  /// is the route of the gradients.
  exchange_plan outputs;
  /// The offsets of the pieces of each sample; see `pieces_of_samples`.
  std::vector<std::uint32_t> piece_offsets;

  /// Returns the offsets of the pieces of the samples that `rank` has in the language model. The
  /// pieces of its k-th sample are the outputs [offsets[k], offsets[k + 1]) that the rank receives,
  /// in the order of the sample. `samples` is `orchestration::samples`.
  [[nodiscard]] std::span<std::uint32_t const> pieces_of_samples(exchange_plan const& samples,
                                                                 std::size_t rank) const {
    return std::span(piece_offsets)
        .subspan(samples.arrivals().offset(rank) + rank, samples.arrivals(rank).size() + 1);
  }
};

/// The plans of all phases of a step; equal on all ranks.
struct orchestration {
  /// The plan that moves the samples, with their text, to their ranks in the language model.
  exchange_plan samples;
  /// The routes of each encoder, in the order of the encoders in the call.
  std::vector<encoder_routes> encoders;

  /// Returns a number that is equal on two ranks if all plans are equal. Different plans almost
  /// surely have different numbers.
  [[nodiscard]] std::uint64_t digest() const {
    detail::data_digest result;
    result.add(samples.digest());
    for (encoder_routes const& encoder : encoders) {
      result.add(encoder.inputs.digest());
      result.add(encoder.outputs.digest());
    }
    return result.value();
  }
};

/// Memory of `make_orchestration`, and its last result. Use the same workspace in all steps.
class make_orchestration_workspace {
 public:
  /// Returns the result of the last call.
  [[nodiscard]] orchestration const& result() const& { return result_; }
  void result() const&& = delete;

 private:
  friend struct make_orchestration_fn;

  make_plan_workspace<1> planner_;
  std::vector<std::uint32_t> first_piece_;
  std::vector<std::uint32_t> offsets_;
  std::vector<std::int64_t> traveling_;
  orchestration result_;
};

struct make_orchestration_fn {
  /// Plans an even arrangement for each phase of a multimodal model. The phases are the samples in
  /// the language model and, for each encoder, its pieces, independent of their samples. The
  /// outputs of an encoder are sent once, directly to the rank that has their sample in the
  /// language model. There the outputs of a sample are contiguous and in order, and the sample's
  /// interleaving of text and pieces finds each output. A sum of gradients over samples does not
  /// depend on the ranks that compute them.
  ///
  /// `encoders` is a tuple, or a range if all have one type; there may be any number of encoders,
  /// or none. Each phase has its own balancer, by default `rebalance`: any balancer that
  /// `make_plan` accepts, such as `lpt`, `padded_batch{}` or `under_cap`. Samples have the order of
  /// `make_plan`, and `options` apply to each phase as in `make_plan`. A sample that moves also
  /// moves the outputs of its pieces, and the output of a piece that moves returns to its sample.
  /// The balancer therefore counts the bytes of both for the sample and for the piece. The plans
  /// count only the bytes of their phase.
  ///
  /// Complexity and memory: the same as `make_plan` for each phase. Determinism: portable. Errors:
  /// the errors of `make_plan` for each phase; `std::invalid_argument` if a measure does not have
  /// an element for each sample or piece. Source: OrchMLLM (arXiv 2503.23830, 2025).
  template <offset_range Offsets,
            class Language = language_phase<detail::number_array, detail::number_array>,
            class Encoders = std::tuple<>>
  [[nodiscard]] orchestration operator()(Offsets const& home_offsets, Language const& language,
                                         Encoders const& encoders,
                                         make_plan_options const& options = {}) const {
    make_orchestration_workspace workspace;
    (*this)(home_offsets, language, encoders, options, workspace);
    return std::move(workspace.result_);
  }

  /// Plans all phases in `workspace`, for a training loop. With `rebalance` and costs of one kind,
  /// a call allocates only if it requires more memory than all earlier calls. The workspace
  /// contains the result.
  template <offset_range Offsets,
            class Language = language_phase<detail::number_array, detail::number_array>,
            class Encoders = std::tuple<>>
  orchestration const& operator()(Offsets const& home_offsets, Language const& language,
                                  Encoders const& encoders, make_plan_options const& options,
                                  make_orchestration_workspace& workspace) const {
    return arrange(name, home_offsets, language, encoders, options, workspace);
  }

  /// Plans all phases in `workspace` with default options.
  template <offset_range Offsets,
            class Language = language_phase<detail::number_array, detail::number_array>,
            class Encoders = std::tuple<>>
  orchestration const& operator()(Offsets const& home_offsets, Language const& language,
                                  Encoders const& encoders,
                                  make_orchestration_workspace& workspace) const {
    return (*this)(home_offsets, language, encoders, {}, workspace);
  }

 private:
  friend struct orchestrate_fn;

  static constexpr std::string_view name = "make_orchestration";

  /// Computes the plans. `function` is the name in error texts.
  template <class Offsets, class Language, class Encoders>
  static orchestration const& arrange(std::string_view function, Offsets const& home_offsets,
                                      Language const& language, Encoders const& encoders,
                                      make_plan_options const& options,
                                      make_orchestration_workspace& workspace) {
    orchestration& plans = workspace.result_;
    std::size_t count = 0;
    detail::for_each_encoder(encoders, [&](auto const& encoder, std::size_t) {
      check_sizes(function, encoder, language.cost.size());
      ++count;
    });
    add_outputs(function, language, encoders, workspace.traveling_);
    plan(function, "language model", home_offsets, language, options, workspace, plans.samples);
    plans.encoders.resize(count);
    detail::for_each_encoder(encoders, [&](auto const& encoder, std::size_t e) {
      find_routes(function, "encoder " + detail::to_text(e), encoder, options, workspace,
                  plans.encoders[e]);
    });
    return plans;
  }

  /// Plans a phase. The balancer counts the bytes in `traveling_`, which include encoder outputs.
  /// The plan counts only the bytes of the phase.
  template <class Offsets, class Phase>
  static void plan(std::string_view function, std::string_view called, Offsets const& home_offsets,
                   Phase const& phase, make_plan_options const& options,
                   make_orchestration_workspace& workspace, exchange_plan& result) try {
    using cost = detail::index_amount<decltype(phase.cost)>;
    auto const make = [&](auto& planner) {
      result = make_plan_fn::plan(function, home_offsets, phase.cost, workspace.traveling_, options,
                                  phase.balance, planner);
    };
    if constexpr (scalar_measure<cost>) {
      make(workspace.planner_);
    } else {
      make_plan_workspace<detail::kinds_of<cost>> planner;
      make(planner);
    }
    detail::plan_writer{result}.set_bytes(detail::given_nodes::of(options),
                                          [&](std::uint32_t i) { return phase.bytes[i]; });
  } catch (capacity_error const& error) {
    std::string const phase_name = std::string(function).append(", ").append(called);
    throw capacity_error(detail::message(phase_name, error.what()));
  }

  template <class Encoder>
  static void find_routes(std::string_view function, std::string_view called,
                          Encoder const& encoder, make_plan_options const& options,
                          make_orchestration_workspace& workspace, encoder_routes& routes) {
    exchange_plan const& samples = workspace.result_.samples;
    std::vector<std::uint32_t>& first_piece = workspace.first_piece_;
    first_piece.assign(1, 0);
    for (std::uint32_t const count : encoder.pieces) {
      first_piece.push_back(first_piece.back() + count);
    }
    workspace.offsets_.clear();
    for (std::uint32_t const offset : samples.home_offsets()) {
      workspace.offsets_.push_back(first_piece[offset]);
    }
    copy_bytes(function, "bytes of an encoder", encoder.bytes, workspace.traveling_);
    for (std::size_t p = 0; p != encoder.bytes.size(); ++p) {
      add_output(function, encoder, p, workspace.traveling_[p]);
    }
    plan(function, called, workspace.offsets_, encoder, options, workspace, routes.inputs);
    find_outputs(samples, first_piece, encoder, options, routes);
  }

  /// Computes the bytes of each sample and of the encoder outputs of its pieces, which move with
  /// it.
  template <class Language, class Encoders>
  static void add_outputs(std::string_view function, Language const& language,
                          Encoders const& encoders, std::vector<std::int64_t>& result) {
    detail::check_size(function, "the number of bytes of the language model", language.bytes.size(),
                       language.cost.size());
    copy_bytes(function, "bytes of the language model", language.bytes, result);
    detail::for_each_encoder(encoders, [&](auto const& encoder, std::size_t) {
      std::size_t piece = 0;
      for (std::size_t sample = 0; sample != result.size(); ++sample) {
        for (std::uint32_t left = encoder.pieces[sample]; left != 0; --left) {
          add_output(function, encoder, piece++, result[sample]);
        }
      }
    });
  }
  static void copy_bytes(std::string_view function, std::string_view what,
                         std::span<std::int64_t const> bytes, std::vector<std::int64_t>& result) {
    for (std::size_t i = 0; i != bytes.size(); ++i)
      detail::check_weight(function, what, i, bytes[i]);
    result.assign(bytes.begin(), bytes.end());
  }
  template <class Encoder>
  static void add_output(std::string_view function, Encoder const& encoder, std::size_t piece,
                         std::int64_t& sum) {
    detail::check_weight(function, "output_bytes", piece, encoder.output_bytes[piece]);
    detail::checked_add(function, "the sum of bytes and output bytes", sum,
                        encoder.output_bytes[piece]);
  }

  template <class Encoder>
  static void check_sizes(std::string_view function, Encoder const& encoder, std::size_t samples) {
    detail::check_size(function, "the number of piece counts", encoder.pieces.size(), samples);
    std::uint64_t pieces = 0;
    for (std::uint32_t const count : encoder.pieces) pieces += count;
    detail::check_index_count(function, "an encoder", pieces);
    detail::check_size(function, "the number of costs", encoder.cost.size(), pieces);
    detail::check_size(function, "the number of bytes", encoder.bytes.size(), pieces);
    detail::check_size(function, "the number of output bytes", encoder.output_bytes.size(), pieces);
  }

  /// Plans the route from the encoding ranks to the ranks of the samples, the pieces of a sample in
  /// order.
  template <class Encoder>
  static void find_outputs(exchange_plan const& samples,
                           std::vector<std::uint32_t> const& first_piece, Encoder const& encoder,
                           make_plan_options const& options, encoder_routes& routes) {
    auto const encoded = routes.inputs.arrivals();
    auto const slots = routes.inputs.departures();
    detail::plan_writer const writer{routes.outputs};
    writer.start(encoded.offsets());
    routes.piece_offsets.clear();
    for (std::size_t rank = 0; rank != samples.ranks(); ++rank) {
      std::uint32_t pieces = 0;
      routes.piece_offsets.push_back(pieces);
      for (std::uint32_t const sample : samples.arrivals(rank)) {
        for (std::uint32_t p = first_piece[sample]; p != first_piece[sample + 1]; ++p) {
          writer.push(slots.item(p));
        }
        routes.piece_offsets.push_back(pieces += encoder.pieces[sample]);
      }
      writer.close();
    }
    writer.finish(detail::given_nodes::of(options),
                  [&](std::uint32_t slot) { return encoder.output_bytes[encoded.item(slot)]; });
  }
};

/// Plans an even arrangement for each phase of a multimodal model; see `make_orchestration_fn`.
inline constexpr make_orchestration_fn make_orchestration{};

}  // namespace omnibal::inline v0
