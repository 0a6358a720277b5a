// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The samples: lengths of a data set, contents that are random but fixed by the sample's number.

#include "dataset.hpp"
#include "options.hpp"

#include <cstdint>
#include <vector>

namespace train_vlm {

struct sample_contents {
  /// Image tiles, patch by patch.
  std::vector<float> pixels;
  /// Text, without the tokens of the images, which come before it.
  std::vector<std::int32_t> text;
};

/// The lengths that the options name, shrunk to those of the model. Errors: those of
/// `read_lengths`.
[[nodiscard]] examples::dataset load_lengths(train_options const& options);

/// There is something to learn: a key of the sample, to be seen in its pixels, says which token
/// follows which, nine times out of ten; text without images follows another rule.
[[nodiscard]] sample_contents make_contents(model_size const& model, examples::sample const& sample,
                                            std::uint64_t seed, std::uint64_t number);

}  // namespace train_vlm
