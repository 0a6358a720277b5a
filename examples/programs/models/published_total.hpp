// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The number of parameters that the publisher of a model states.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>

#include <nlohmann/json_fwd.hpp>

namespace examples {

/// What the publisher of a model says of its size.
struct published_total {
  /// 0: not known, because the bytes of a parameter are not.
  std::int64_t parameters = 0;
  /// Of all weights; 0: not stated.
  std::int64_t bytes = 0;
  /// The field and the file that say so, or why the bytes are no number of parameters.
  std::string source;
};

/// The total of an index of weights, as it stands beside a configuration. Older ones have the bytes
/// only, which say the parameters if all have the type of the configuration. `path` is for errors:
/// `input_error` that names the field.
[[nodiscard]] published_total total_of_index(std::string const& path, nlohmann::json const& index,
                                             nlohmann::json const& configuration);

/// Published totals by the names of models.
using published_totals = std::map<std::string, std::int64_t, std::less<>>;

/// Reads a CSV file with the columns `model` and `parameters`. Errors: `input_error`, also for a
/// model that occurs twice.
[[nodiscard]] published_totals read_published_totals(std::filesystem::path const& path);

}  // namespace examples
