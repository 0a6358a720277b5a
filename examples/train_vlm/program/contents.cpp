// SPDX-License-Identifier: Apache-2.0
#include "contents.hpp"

#include "progress.hpp"
#include "synthetic.hpp"

#include <omnibal/rng/engine.hpp>

#include <algorithm>
#include <cstddef>

namespace train_vlm {

examples::dataset load_lengths(train_options const& options) {
  constexpr std::int64_t tokens_of_tile = 256;
  examples::progress hidden(examples::visibility::hidden);
  examples::dataset data =
      options.lengths.files.empty()
          ? examples::synthetic_lengths(options.synthetic_samples, options.seed)
          : examples::read_lengths(options.lengths, hidden);
  if (options.limit != 0 && options.limit < data.samples.size()) data.samples.resize(options.limit);
  for (examples::sample& sample : data.samples) {
    std::int64_t const text =
        std::max<std::int64_t>(1, sample.tokens - sample.images * tokens_of_tile);
    sample.tokens = sample.images * options.model.tile_tokens +
                    std::max<std::int64_t>(2, (text + options.shrink - 1) / options.shrink);
  }
  return data;
}

sample_contents make_contents(model_size const& model, examples::sample const& sample,
                              std::uint64_t seed, std::uint64_t number) {
  constexpr std::uint64_t keys = 8;
  omnibal::rng::engine random(seed, number);
  auto const vocabulary = static_cast<std::uint64_t>(model.vocabulary);
  std::uint64_t const key = omnibal::rng::below(random, keys);

  sample_contents result;
  std::int64_t const patches = sample.images * model.tile_tokens * 4;
  result.pixels.resize(static_cast<std::size_t>(patches * model.patch_values));
  auto const values = static_cast<std::size_t>(model.patch_values);
  for (std::size_t i = 0; i != result.pixels.size(); ++i) {
    float const pattern = static_cast<float>((i % values) * (key + 1) % 7) / 7.0F - 0.5F;
    float const noise = static_cast<float>(random() >> 40U) / 16777216.0F - 0.5F;
    result.pixels[i] = pattern + noise;
  }

  result.text.resize(static_cast<std::size_t>(sample.tokens - sample.images * model.tile_tokens));
  std::uint64_t const factor = sample.images == 0 ? 5 : 3;
  std::uint64_t last = omnibal::rng::below(random, vocabulary);
  for (std::int32_t& token : result.text) {
    bool const is_noise = omnibal::rng::below(random, 10) == 0;
    last = is_noise ? omnibal::rng::below(random, vocabulary) : (last * factor + key) % vocabulary;
    token = static_cast<std::int32_t>(last);
  }
  return result;
}

}  // namespace train_vlm
