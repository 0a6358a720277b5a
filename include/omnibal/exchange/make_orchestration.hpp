#pragma once

/// \file
/// Arrangements of several phases: encoders and a language model.

#include <omnibal/balance/keep_home.hpp>
#include <omnibal/check.hpp>
#include <omnibal/detail/agreement.hpp>
#include <omnibal/detail/data_digest.hpp>
#include <omnibal/exchange/exchange_plan.hpp>
#include <omnibal/exchange/make_plan.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <ranges>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace omnibal::inline v0 {

namespace detail {

/// A range whose elements outlive the expression that names it.
template <class Range, class T>
concept lasting_range = std::ranges::contiguous_range<Range> && std::ranges::sized_range<Range> &&
    (std::is_lvalue_reference_v<Range> || std::ranges::borrowed_range<Range>)&&std::same_as<
        std::remove_cv_t<std::remove_reference_t<std::ranges::range_reference_t<Range>>>, T>;

/// A span that cannot be made of a temporary: a member of an argument that is kept for a while.
template <class T>
class lasting_span : public std::span<T const> {
 public:
  lasting_span() = default;

  template <lasting_range<T> Range>
    requires(!std::same_as<std::remove_cvref_t<Range>, lasting_span>)
  constexpr lasting_span(Range&& range) : std::span<T const>(range) {}
};

}  // namespace detail

/// What the language model takes, an element for each sample of all ranks. Views of arrays that
/// must outlive this object; temporary ones are refused.
struct language_measures {
  detail::lasting_span<std::int64_t> costs;
  detail::lasting_span<std::int64_t> bytes;
};

/// What an encoder takes. A sample has any number of pieces, such as its images, one after the
/// other in the order in which the sample has them; a sample of text alone has none. Views, as
/// above.
struct encoder_measures {
  /// The number of pieces of each sample.
  detail::lasting_span<std::uint32_t> piece_counts;
  /// An element for each piece.
  detail::lasting_span<std::int64_t> costs;
  detail::lasting_span<std::int64_t> bytes;
  /// What the encoder makes of the piece.
  detail::lasting_span<std::int64_t> output_bytes;
};

/// The routes of the pieces of one encoder.
struct encoder_routes {
  /// From where the samples are to where their pieces are encoded.
  exchange_plan inputs;
  /// From there to the ranks that have their samples in the language model. The inverse is the
  /// route of the gradients.
  exchange_plan outputs;
  /// See `pieces_of_samples`.
  std::vector<std::uint32_t> piece_offsets;

  /// The pieces of the samples that `rank` has in the language model: those of its k-th sample are
  /// the outputs [offsets[k], offsets[k + 1]) that the rank gets, in the order in which the sample
  /// has them. `samples` is `orchestration::samples`.
  [[nodiscard]] std::span<std::uint32_t const> pieces_of_samples(exchange_plan const& samples,
                                                                 std::size_t rank) const {
    return std::span(piece_offsets)
        .subspan(samples.arrivals().offset(rank) + rank, samples.arrivals(rank).size() + 1);
  }
};

/// The arrangements of all phases of a step; equal on all ranks.
struct orchestration {
  /// The samples, with their text, in the language model.
  exchange_plan samples;
  /// In the order in which the encoders were given.
  std::vector<encoder_routes> encoders;

  /// Equal on two ranks where all plans are, and almost surely only then.
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

/// Memory of `make_orchestration`, and its last result. To be kept from step to step.
class make_orchestration_workspace {
 public:
  /// The result of the last call.
  [[nodiscard]] orchestration const& result() const& { return result_; }
  void result() const&& = delete;

 private:
  friend struct make_orchestration_fn;

  make_plan_workspace<1> planner_;
  std::vector<std::uint32_t> first_piece_;
  std::vector<std::uint32_t> offsets_;
  std::vector<std::int64_t> travelling_;
  orchestration result_;
};

struct make_orchestration_fn {
  /// Gives each phase of a multimodal model its own even arrangement: the samples for the language
  /// model, and for each encoder its pieces, whatever sample they belong to. The outputs of an
  /// encoder travel once, straight to the rank that has their sample in the language model, where
  /// those of a sample lie together and in order; so the sample's interleaving of text and pieces
  /// finds each of them. A sum of gradients over samples does not depend on where each is computed.
  ///
  /// Samples lie as in `make_plan`, and `options` and `balance` are used for each phase as there.
  /// A sample that moves takes the outputs of its pieces along, and the output of a piece that
  /// moves comes back to its sample; so the balancer sees the bytes of both as those of the sample
  /// and of the piece. The plans count their own bytes only. Any number of encoders, also none.
  ///
  /// Complexity and memory: those of `make_plan` for each phase.
  /// Determinism: portable. Errors: those of `make_plan` for each phase; `std::invalid_argument`
  /// for measures that do not have an element for each sample or piece. Source: OrchMLLM (arXiv
  /// 2503.23830, 2025).
  template <offset_range Offsets,
            plan_balancer<std::span<std::int64_t const>> Balance = keep_home_fn>
  [[nodiscard]] orchestration operator()(Offsets const& home_offsets,
                                         language_measures const& language,
                                         std::span<encoder_measures const> encoders,
                                         make_plan_options const& options = {},
                                         Balance const& balance = keep_home) const {
    make_orchestration_workspace workspace;
    (*this)(home_offsets, language, encoders, options, balance, workspace);
    return std::move(workspace.result_);
  }

  /// The same in memory that is kept, for a training loop: with `keep_home` a call allocates only
  /// where it needs more than all calls before it. The result lies in the workspace.
  template <offset_range Offsets, plan_balancer<std::span<std::int64_t const>> Balance>
  orchestration const& operator()(Offsets const& home_offsets, language_measures const& language,
                                  std::span<encoder_measures const> encoders,
                                  make_plan_options const& options, Balance const& balance,
                                  make_orchestration_workspace& workspace) const {
    return arrange(name, home_offsets, language, encoders, options, balance, workspace);
  }

 private:
  friend struct orchestrate_fn;

  static constexpr std::string_view name = "make_orchestration";

  /// For the function that error texts name.
  template <class Offsets, class Balance>
  static orchestration const& arrange(std::string_view function, Offsets const& home_offsets,
                                      language_measures const& language,
                                      std::span<encoder_measures const> encoders,
                                      make_plan_options const& options, Balance const& balance,
                                      make_orchestration_workspace& workspace) {
    orchestration& plans = workspace.result_;
    for (encoder_measures const& encoder : encoders)
      check_sizes(function, encoder, language.costs.size());
    add_outputs(function, language, encoders, workspace.travelling_);
    plans.samples = make_plan_fn::plan(function, home_offsets, language.costs,
                                       workspace.travelling_, options, balance, workspace.planner_);
    detail::plan_writer{plans.samples}.set_bytes(
        options.ranks_per_node, [&](std::uint32_t sample) { return language.bytes[sample]; });
    plans.encoders.resize(encoders.size());
    for (std::size_t e = 0; e != encoders.size(); ++e) {
      find_routes(function, encoders[e], options, balance, workspace, plans.encoders[e]);
    }
    return plans;
  }

  template <class Balance>
  static void find_routes(std::string_view function, encoder_measures const& encoder,
                          make_plan_options const& options, Balance const& balance,
                          make_orchestration_workspace& workspace, encoder_routes& routes) {
    exchange_plan const& samples = workspace.result_.samples;
    count_pieces(encoder, workspace.first_piece_);
    workspace.offsets_.clear();
    for (std::uint32_t const offset : samples.home_offsets()) {
      workspace.offsets_.push_back(workspace.first_piece_[offset]);
    }
    copy_bytes(function, "bytes of an encoder", encoder.bytes, workspace.travelling_);
    for (std::size_t p = 0; p != encoder.bytes.size(); ++p) {
      add_output(function, encoder, p, workspace.travelling_[p]);
    }
    routes.inputs = make_plan_fn::plan(function, workspace.offsets_, encoder.costs,
                                       workspace.travelling_, options, balance, workspace.planner_);
    detail::plan_writer{routes.inputs}.set_bytes(
        options.ranks_per_node, [&](std::uint32_t piece) { return encoder.bytes[piece]; });
    find_outputs(samples, workspace.first_piece_, encoder, options, routes);
    routes.piece_offsets.clear();
    for (std::size_t rank = 0; rank != samples.ranks(); ++rank) {
      std::uint32_t pieces = 0;
      routes.piece_offsets.push_back(pieces);
      for (std::uint32_t const sample : samples.arrivals(rank)) {
        routes.piece_offsets.push_back(pieces += encoder.piece_counts[sample]);
      }
    }
  }

  /// The bytes of each sample and of what the encoders make of its pieces, which follow it.
  static void add_outputs(std::string_view function, language_measures const& language,
                          std::span<encoder_measures const> encoders,
                          std::vector<std::int64_t>& result) {
    detail::check_size(function, "the number of bytes of the language model", language.bytes.size(),
                       language.costs.size());
    copy_bytes(function, "bytes of the language model", language.bytes, result);
    for (encoder_measures const& encoder : encoders) {
      std::size_t piece = 0;
      for (std::size_t sample = 0; sample != result.size(); ++sample) {
        for (std::uint32_t left = encoder.piece_counts[sample]; left != 0; --left) {
          add_output(function, encoder, piece++, result[sample]);
        }
      }
    }
  }
  static void copy_bytes(std::string_view function, std::string_view what,
                         std::span<std::int64_t const> bytes, std::vector<std::int64_t>& result) {
    for (std::size_t i = 0; i != bytes.size(); ++i)
      detail::check_weight(function, what, i, bytes[i]);
    result.assign(bytes.begin(), bytes.end());
  }
  static void add_output(std::string_view function, encoder_measures const& encoder,
                         std::size_t piece, std::int64_t& sum) {
    detail::check_weight(function, "output_bytes", piece, encoder.output_bytes[piece]);
    detail::checked_add(function, "the sum of bytes and output bytes", sum,
                        encoder.output_bytes[piece]);
  }

  static void check_sizes(std::string_view function, encoder_measures const& encoder,
                          std::size_t samples) {
    detail::check_size(function, "the number of piece counts", encoder.piece_counts.size(),
                       samples);
    std::uint64_t pieces = 0;
    for (std::uint32_t const count : encoder.piece_counts) pieces += count;
    detail::check_index_count(function, "an encoder", pieces);
    detail::check_size(function, "the number of costs", encoder.costs.size(), pieces);
    detail::check_size(function, "the number of bytes", encoder.bytes.size(), pieces);
    detail::check_size(function, "the number of output bytes", encoder.output_bytes.size(), pieces);
  }

  /// The first piece of each sample, and the number of all pieces.
  static void count_pieces(encoder_measures const& encoder, std::vector<std::uint32_t>& result) {
    result.clear();
    result.reserve(encoder.piece_counts.size() + 1);
    std::uint32_t next = 0;
    for (std::uint32_t const count : encoder.piece_counts) {
      result.push_back(next);
      next += count;
    }
    result.push_back(next);
  }

  /// From where pieces are encoded to where their samples are, those of a sample in order.
  static void find_outputs(exchange_plan const& samples,
                           std::vector<std::uint32_t> const& first_piece,
                           encoder_measures const& encoder, make_plan_options const& options,
                           encoder_routes& routes) {
    auto const encoded = routes.inputs.arrivals();
    auto const slots = routes.inputs.departures();
    detail::plan_writer const writer{routes.outputs};
    writer.start(encoded.offsets());
    for (std::size_t rank = 0; rank != samples.ranks(); ++rank) {
      for (std::uint32_t const sample : samples.arrivals(rank)) {
        for (std::uint32_t p = first_piece[sample]; p != first_piece[sample + 1]; ++p) {
          writer.push(slots.item(p));
        }
      }
      writer.close();
    }
    writer.finish(options.ranks_per_node,
                  [&](std::uint32_t slot) { return encoder.output_bytes[encoded.item(slot)]; });
  }
};

/// Arrangements of several phases; see `make_orchestration_fn`.
inline constexpr make_orchestration_fn make_orchestration{};

}  // namespace omnibal::inline v0
