// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// What the example programs know about a data set: the length of every sample, and where it came
/// from.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace examples {

/// What one training sample brings into a batch.
struct sample {
  /// Image tiles that the vision encoder sees.
  std::int64_t images;
  /// Tokens that the language model sees, those of the images included.
  std::int64_t tokens;

  [[nodiscard]] friend bool operator==(sample const&, sample const&) = default;
};

/// A file, or the generator, that contributed a run of consecutive samples.
struct source {
  std::string name;
  std::size_t records;
};

enum class sample_kind {
  /// No source tells of images.
  text,
  images_and_text
};

struct dataset {
  std::vector<sample> samples;
  /// In the order of the samples.
  std::vector<source> sources;
  sample_kind kind = sample_kind::text;
};

}  // namespace examples
