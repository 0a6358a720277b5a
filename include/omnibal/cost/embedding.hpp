#pragma once

/// \file
/// From tokens to vectors.

#include <omnibal/cost/detail/layer_tally.hpp>
#include <omnibal/cost/layer_cost.hpp>
#include <omnibal/cost/parallel_degrees.hpp>
#include <omnibal/cost/workload.hpp>

#include <cstdint>

namespace omnibal::inline v0 {

/// The token embedding of a language model. A lookup: no FLOPs, 8 bytes kept for the index of each
/// token, all tokens of the documents at the cut. Tensor-parallel ranks share out the vocabulary,
/// rounded up to a multiple of them.
///
/// Complexity, memory, determinism and errors as `transformer`.
struct embedding {
  std::int64_t vocabulary = 0;
  std::int64_t hidden = 0;
  /// Learned positions, which every rank has; 0: none.
  std::int64_t positions = 0;
  training_mode training = training_mode::all;

  /// What the embedding costs for `batch.documents`.
  [[nodiscard]] layer_cost operator()(workload const& batch, parallel_degrees const& degrees = {},
                                      byte_sizes const& bytes = {}) const {
    using detail::held;
    using detail::int128;
    constexpr std::int64_t index_bytes = 8;
    constexpr char const* name = "embedding";
    detail::layer_tally tally(name, degrees, bytes, training, detail::remade::nothing);
    detail::check_width(name, "vocabulary", vocabulary);
    detail::check_width(name, "hidden", hidden);
    detail::check_between(name, "positions", positions, 0, detail::most_width);
    detail::check_sequences(name, "documents", batch.documents);
    int128 const rows = tally.in_sequence(batch.documents.tokens);
    int128 const output_bytes = tally.activation_bytes(rows * hidden);
    tally.parameters(detail::rounded_up(vocabulary, tally.tensor()) * hidden, held::split);
    tally.parameters(int128{positions} * hidden, held::whole);
    tally.keep(index_bytes * rows, held::whole, detail::needed::for_weights);
    tally.moved(2 * output_bytes, held::at_norm);
    tally.widest(output_bytes, held::at_norm);
    return tally.result({index_bytes * rows, held::whole}, {output_bytes, held::at_norm});
  }
};

}  // namespace omnibal::inline v0
