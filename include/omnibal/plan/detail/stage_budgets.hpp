// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The memory of each stage, and the micro-batches that it keeps.

#include <omnibal/check.hpp>
#include <omnibal/detail/conversions.hpp>
#include <omnibal/pipeline/chunks_in_flight.hpp>
#include <omnibal/plan/pipeline_plan.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace omnibal::inline v0::detail {

/// The memory, the reserve and the micro-batches in flight of each stage. If stages have several
/// chunks, `chunks` holds the units in flight of each chunk.
struct stage_budgets {
  std::vector<std::int64_t> memory;
  std::vector<std::int64_t> reserve;
  std::vector<std::int64_t> in_flight;
  std::vector<chunk_counts> chunks;

  /// The budgets of stages with one chunk.
  stage_budgets(std::string_view function, pipeline_machine const& machine,
                plan_pipeline_options const& options)
      : stage_budgets(function, machine) {
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

  /// The budgets of stages with `count` chunks; `units` holds the units that each stage keeps in
  /// flight.
  stage_budgets(std::string_view function, pipeline_machine const& machine, std::size_t count,
                std::vector<chunk_counts> units)
      : stage_budgets(function, machine) {
    chunks = std::move(units);
    check_size(function, "chunks.in_flight", chunks.size(), machine.stages, "stages");
    for (std::size_t s = 0; s != machine.stages; ++s) {
      std::int64_t most = 0;
      check_counts(function, s, count);
      for (std::size_t i = 0; i != chunks[s].size(); ++i) {
        std::int64_t sum = 0;
        for (std::int64_t const kept : chunks[s][i]) sum += kept;
        if (static_cast<std::uint64_t>(sum) > max_index_count) {
          throw_invalid(function, "chunks.in_flight[", s, "] has ", sum,
                        " units at a moment, must be below 2^32");
        }
        most = std::max(most, sum);
      }
      in_flight.push_back(most);
    }
  }

 private:
  stage_budgets(std::string_view function, pipeline_machine const& machine)
      : memory(spread(function, "machine.memory_bytes", machine.memory_bytes, machine.stages)),
        reserve(spread(function, "machine.reserve_bytes", machine.reserve_bytes, machine.stages)) {}

  void check_counts(std::string_view function, std::size_t stage, std::size_t expected) const {
    auto const& given = chunks[stage];
    std::string const place = "chunks.in_flight[" + to_text(stage) + "]";
    if (given.chunks != expected || given.counts.empty() || given.counts.size() % expected != 0) {
      throw_invalid(function, place, " has ", given.counts.size(), " numbers for ", given.chunks,
                    " chunks, must have rows of ", expected);
    }
    for (std::size_t i = 0; i != given.counts.size(); ++i) {
      std::int64_t const units = given.counts[i];
      if (units >= 0 && static_cast<std::uint64_t>(units) <= max_index_count) continue;
      throw_invalid(function, place, ".counts[", i, "] is ", units,
                    ", must be from 0 to below 2^32");
    }
  }

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
