// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// A configuration in the words of trainers: flags of Megatron-LM, overrides of Megatron-Bridge,
/// TOML of torchtitan, JSON of DeepSpeed.

#include "configure_options.hpp"
#include "model_file.hpp"

#include <omnibal/plan/configuration_plan.hpp>

#include <ostream>

namespace examples {

/// Writes the options of a trainer for a configuration. Options that the search did not choose are
/// absent. The layers of each stage follow unless all stages of Megatron-LM have the same number.
/// Selective recomputation has other names there: the norms and the activations of experts of
/// Megatron-LM (its core attention if attention is unfused), the mode `selective` of torchtitan.
///
/// Errors: `std::runtime_error` that names what a trainer cannot run: stages of a tower, sharding
/// of gradients in Megatron-LM, sharding of the optimizer alone in torchtitan, pipelines and
/// context parallelism in DeepSpeed.
void write_trainer_flags(std::ostream& out, trainer to, model_description const& model,
                         omnibal::planned_configuration const& given);

}  // namespace examples
