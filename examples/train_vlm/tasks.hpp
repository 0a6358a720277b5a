#pragma once

/// \file
/// What train_vlm can be asked to do; every rank calls these.

#include "trainer.hpp"

namespace train_vlm {

/// What the losses of an epoch are multiplied by where each of its tokens weighs the same; `cells`
/// are its steps times the ranks.
[[nodiscard]] double epoch_scale(packed_data const& data, model_size const& model,
                                 std::size_t cells);

void train(train_options const& options, trainer& of);
void compare_forms(train_options const& options, trainer& of);
void replay_ranks(train_options const& options, trainer& of);
/// False where gradients that should be equal differ.
[[nodiscard]] bool compare_gradients(train_options const& options, trainer& of);
/// False where losses that should be equal differ.
[[nodiscard]] bool compare_curves(train_options const& options, trainer& of);

}  // namespace train_vlm
