// SPDX-License-Identifier: Apache-2.0
#include "batch_source.hpp"

#include <omnibal/rng/engine.hpp>
#include <omnibal/rng/permutation.hpp>

#include <stdexcept>
#include <string>
#include <utility>

namespace examples {

namespace {

[[noreturn]] void refuse(std::size_t index, sample const& one, std::int64_t tile_tokens) {
  throw std::runtime_error("sample " + std::to_string(index) + " has " +
                           std::to_string(one.tokens) + " tokens, fewer than the " +
                           std::to_string(tile_tokens) + " of each of its " +
                           std::to_string(one.images) +
                           " tiles; where the field of tokens has the text alone, give "
                           "--tokens-per-tile " +
                           std::to_string(tile_tokens));
}

}  // namespace

batch_source::batch_source(dataset data, std::int64_t tile_tokens)
    : samples_(std::move(data.samples)), tile_tokens_(tile_tokens) {
  if (samples_.empty()) throw std::runtime_error("there are no samples to draw");
  for (std::size_t i = 0; i != samples_.size(); ++i) {
    // No product, which might overflow.
    bool const fits = samples_[i].images <= samples_[i].tokens / tile_tokens_;
    if (!fits) refuse(i, samples_[i], tile_tokens_);
  }
}

std::vector<multimodal_sample> batch_source::draw(mix_draw const& which, std::size_t ranks) const {
  if (samples_.empty()) return draw_samples(which);
  std::vector<multimodal_sample> drawn;
  drawn.reserve(which.samples);
  std::uint64_t const first = (which.step * ranks + which.rank) * which.samples;
  for (std::size_t i = 0; i != which.samples; ++i) {
    std::uint64_t const epoch = (first + i) / samples_.size();
    omnibal::rng::permutation const order(samples_.size(), omnibal::rng::mix(which.seed + epoch));
    sample const& one = samples_[order((first + i) % samples_.size())];
    auto& made = drawn.emplace_back(multimodal_sample{
        which.rank * which.samples + i, one.tokens - one.images * tile_tokens_, {}});
    if (one.images != 0) made.pieces.push_back({modality::image, one.images});
  }
  return drawn;
}

}  // namespace examples
