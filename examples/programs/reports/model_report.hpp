// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// What a model is: its layers as they were understood, and the sums over them.

#include "model_file.hpp"
#include "table.hpp"

#include <cstdint>
#include <ostream>
#include <span>
#include <string>

namespace examples {

/// `attention, window 1,024, 8 of 128 experts`: the parts of a layer of a language model.
[[nodiscard]] std::string parts_of(omnibal::transformer const& layer);

/// The published total of a model beside the parameters that the layers have, and their difference
/// in words; empty if the model states none. The total of a publisher may have layers of
/// multi-token prediction and parameters that never run, or not: the nearest of these sums is
/// compared.
[[nodiscard]] std::string published_text(model_description const& model);

/// The layers of a model, a row for all equal layers: the number of the first one, their count,
/// kind and parts, and of one layer the parameters, FLOPs of a token and kept bytes of a token in
/// documents of `length` tokens.
void print_layers(std::ostream& out, model_description const& model, std::int64_t length);

/// A table with one row for each model: parameters, active ones, those of the language model,
/// training FLOPs of a token in documents of 4,096 and 131,072 tokens, kept bytes of a token, the
/// published total and the difference from it. "-": there is no published number of parameters.
[[nodiscard]] table models_table(std::span<model_description const> models);

}  // namespace examples
