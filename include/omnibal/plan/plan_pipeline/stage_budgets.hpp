#pragma once

/// \file
/// What memory the stages have and how many micro-batches share it.

#include <omnibal/check.hpp>
#include <omnibal/partition/weight_list.hpp>
#include <omnibal/plan/pipeline_machine.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace omnibal::inline v0::detail {

/// One value for each stage.
struct stage_budgets {
  std::vector<std::int64_t> memory;
  std::vector<std::int64_t> reserve;
  std::vector<std::int64_t> in_flight;

  stage_budgets(std::string_view function, pipeline_machine const& machine,
                plan_pipeline_options const& options)
      : memory(spread(function, "machine.memory_bytes", machine.memory_bytes, machine.stages)),
        reserve(spread(function, "machine.reserve_bytes", machine.reserve_bytes, machine.stages)) {
    if (options.in_flight.empty()) {
      for (std::size_t after = machine.stages; after != 0; --after) {
        in_flight.push_back(static_cast<std::int64_t>(std::min(options.micro_batches, after)));
      }
      return;
    }
    in_flight = spread(function, "options.in_flight", options.in_flight, machine.stages);
    for (std::size_t s = 0; s != in_flight.size(); ++s) {
      if (in_flight[s] > 0) continue;
      throw_invalid(function, "options.in_flight[" + to_text(s) + "] is 0, must be at least 1");
    }
  }

 private:
  [[nodiscard]] static std::vector<std::int64_t> spread(std::string_view function,
                                                        std::string_view argument,
                                                        weight_list<std::int64_t> const& list,
                                                        std::size_t stages) {
    auto const values = list.values();
    if (values.size() != 1 && values.size() != stages) {
      throw_invalid(function, std::string(argument) + " has " + to_text(values.size()) +
                                  " values, must have 1 or " + to_text(stages));
    }
    for (std::size_t s = 0; s != values.size(); ++s) {
      check_weight(function, argument, s, values[s]);
    }
    if (values.size() == stages) return {values.begin(), values.end()};
    return std::vector<std::int64_t>(stages, values[0]);
  }
};

}  // namespace omnibal::inline v0::detail
