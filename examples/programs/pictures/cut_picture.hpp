// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// How even the stages of models are, by each rule and for each number of stages, as one picture.

#include "vlm_cuts.hpp"

#include <ostream>
#include <span>
#include <string>
#include <vector>

namespace examples {

/// A model, cut into each number of stages from a least to a most one.
struct model_cuts {
  std::string name;
  /// Of each stage.
  std::size_t chunks = 1;
  std::vector<stage_comparison> by_stages;
};

/// Draws two diagrams for each model: what may be made even at the left, the last percents at the
/// right. Equal input gives equal bytes. Precondition: every model has been cut.
void write_cut_picture(std::span<model_cuts const> models, std::ostream& out);

}  // namespace examples
