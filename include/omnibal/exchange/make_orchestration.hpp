#pragma once

/// \file
/// Arrangements of several phases: encoders and a language model.

#include <omnibal/balance/keep_home.hpp>
#include <omnibal/check.hpp>
#include <omnibal/comm/detail/check_collective.hpp>
#include <omnibal/detail/data_digest.hpp>
#include <omnibal/exchange/compose.hpp>
#include <omnibal/exchange/detail/plan_writer.hpp>
#include <omnibal/exchange/exchange_options.hpp>
#include <omnibal/exchange/exchange_plan.hpp>
#include <omnibal/exchange/make_plan.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace omnibal::inline v0 {

/// What the language model takes, an element for each sample of all ranks.
struct language_measures {
  std::span<std::int64_t const> costs;
  std::span<std::int64_t const> bytes;
};

/// What an encoder takes. A sample has any number of pieces, such as its images, one after the
/// other in the order in which the sample has them; a sample of text alone has none.
struct encoder_measures {
  /// The number of pieces of each sample.
  std::span<std::uint32_t const> piece_counts;
  /// An element for each piece.
  std::span<std::int64_t const> costs;
  std::span<std::int64_t const> bytes;
  /// What the encoder makes of the piece.
  std::span<std::int64_t const> output_bytes;
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

struct make_orchestration_fn {
  /// Gives each phase of a multimodal model its own even arrangement: the samples for the language
  /// model, and for each encoder its pieces, whatever sample they belong to. The outputs of an
  /// encoder travel once, straight to the rank that has their sample in the language model, where
  /// those of a sample lie together and in order; so the sample's interleaving of text and pieces
  /// finds each of them. A sum of gradients over samples does not depend on where each is computed.
  ///
  /// Samples lie as in `make_plan`, and `options` and `balance` are used for each phase as there.
  /// Any number of encoders, also none.
  ///
  /// Complexity and memory: those of `make_plan` for each phase and of `compose` for each encoder.
  /// Determinism: portable. Errors: those of `make_plan` for each phase; `std::invalid_argument`
  /// for measures that do not have an element for each sample or piece. Source: OrchMLLM (arXiv
  /// 2503.23830, 2025).
  template <offset_range Offsets,
            plan_balancer<std::span<std::int64_t const>> Balance = keep_home_fn>
  [[nodiscard]] orchestration operator()(Offsets const& home_offsets,
                                         language_measures const& language,
                                         std::span<encoder_measures const> encoders,
                                         exchange_options const& options = {},
                                         Balance const& balance = keep_home) const {
    orchestration result;
    result.samples = make_plan(home_offsets, language.costs, language.bytes, options, balance);
    result.encoders.reserve(encoders.size());
    for (encoder_measures const& encoder : encoders) {
      result.encoders.push_back(routes_of(result.samples, encoder, options, balance));
    }
    return result;
  }

 private:
  static constexpr std::string_view name = "make_orchestration";

  template <class Balance>
  [[nodiscard]] static encoder_routes routes_of(exchange_plan const& samples,
                                                encoder_measures const& encoder,
                                                exchange_options const& options,
                                                Balance const& balance) {
    check_sizes(encoder, samples.sample_count());
    std::vector<std::uint32_t> const first_piece = first_pieces(encoder);
    std::vector<std::uint32_t> offsets;
    for (std::uint32_t const offset : samples.home_offsets()) {
      offsets.push_back(first_piece[offset]);
    }
    encoder_routes routes;
    routes.inputs = make_plan(offsets, encoder.costs, encoder.bytes, options, balance);
    exchange_plan const arranged = pieces_with_samples(samples, offsets, first_piece);
    auto const output_bytes = [&](std::uint32_t slot) {
      return encoder.output_bytes[routes.inputs.arrivals().item(slot)];
    };
    routes.outputs = compose(routes.inputs.inverse(), arranged, output_bytes,
                             {.ranks_per_node = options.ranks_per_node});
    for (std::size_t rank = 0; rank != samples.ranks(); ++rank) {
      std::uint32_t pieces = 0;
      routes.piece_offsets.push_back(pieces);
      for (std::uint32_t const sample : samples.arrivals(rank)) {
        routes.piece_offsets.push_back(pieces += encoder.piece_counts[sample]);
      }
    }
    return routes;
  }

  static void check_sizes(encoder_measures const& encoder, std::size_t samples) {
    detail::check_size(name, "the number of piece counts", encoder.piece_counts.size(), samples);
    std::uint64_t pieces = 0;
    for (std::uint32_t const count : encoder.piece_counts) pieces += count;
    detail::check_index_count(name, "an encoder", pieces);
    detail::check_size(name, "the number of costs", encoder.costs.size(), pieces);
    detail::check_size(name, "the number of bytes", encoder.bytes.size(), pieces);
    detail::check_size(name, "the number of output bytes", encoder.output_bytes.size(), pieces);
  }

  /// The first piece of each sample, and the number of all pieces.
  [[nodiscard]] static std::vector<std::uint32_t> first_pieces(encoder_measures const& encoder) {
    std::vector<std::uint32_t> result;
    result.reserve(encoder.piece_counts.size() + 1);
    std::uint32_t next = 0;
    for (std::uint32_t const count : encoder.piece_counts) {
      result.push_back(next);
      next += count;
    }
    result.push_back(next);
    return result;
  }

  /// The plan by which pieces would go where their samples go.
  [[nodiscard]] static exchange_plan pieces_with_samples(
      exchange_plan const& samples, std::vector<std::uint32_t> const& offsets,
      std::vector<std::uint32_t> const& first_piece) {
    exchange_plan result;
    detail::plan_writer const writer{result};
    writer.start(offsets);
    for (std::size_t rank = 0; rank != samples.ranks(); ++rank) {
      for (std::uint32_t const sample : samples.arrivals(rank)) {
        for (std::uint32_t p = first_piece[sample]; p != first_piece[sample + 1]; ++p) {
          writer.push(p);
        }
      }
      writer.close();
    }
    writer.finish(1, [](std::uint32_t) { return std::int64_t{0}; });
    return result;
  }
};

/// Arrangements of several phases; see `make_orchestration_fn`.
inline constexpr make_orchestration_fn make_orchestration{};

}  // namespace omnibal::inline v0
