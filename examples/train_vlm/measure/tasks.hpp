// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// What train_vlm can be asked to do; every rank calls these.

#include "trainer.hpp"

namespace train_vlm {

/// What losses are divided by, as the options say.
[[nodiscard]] loss_weight weight_of(train_options const& options, packed_data const& data,
                                    feed const& steps, std::size_t ranks);

void train(train_options const& options, trainer& of);
void compare_forms(train_options const& options, trainer& of);
void replay_ranks(train_options const& options, trainer& of);
/// Prints what layers `select_recompute` keeps under several budgets, and what that takes.
void select_memory(train_options const& options, trainer& of);
/// Keeps, recomputes and offloads saved tensors, and prints predicted and measured peaks. False
/// where a peak is above its prediction or 5 % below it, or gradients differ.
[[nodiscard]] bool check_offloading(train_options const& options, trainer& of);
/// Cuts the model into a stage for each rank by several rules, and prints how long a step of such a
/// pipeline takes and what was predicted. False where gradients differ from those without it.
[[nodiscard]] bool compare_cuts(train_options const& options, trainer& of);
/// Trains on texts in packs of one length and of two, and prints times and losses. False where
/// gradients of the epoch that should be equal differ.
[[nodiscard]] bool compare_long_contexts(train_options const& options, trainer& of);
/// Prints what each form has learned after an epoch, of several seeds.
void compare_learning(train_options const& options, trainer& of);
/// False where gradients that should be equal differ.
[[nodiscard]] bool compare_gradients(train_options const& options, trainer& of);
/// False where losses that should be equal differ.
[[nodiscard]] bool compare_curves(train_options const& options, trainer& of);

}  // namespace train_vlm
