#pragma once

/// \file
/// A plan as JSON.

#include <omnibal/check.hpp>
#include <omnibal/plan/pipeline_plan.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace omnibal::inline v0 {

struct write_plan_fn {
  /// Writes a plan as one JSON object to an output iterator of `char` and returns its end:
  /// `status`, `boundaries`, `choices`, `stages` (each with `time`, `bytes` and `in_flight`),
  /// `step_time`, `lower_bound` and `proven`; or, where infeasible, `status`, `stage` and
  /// `missing_bytes`. Numbers read back as the same numbers; integers need a reader that knows all
  /// 64 bits.
  ///
  /// Complexity: linear. Memory: the text. Determinism: portable for integers. Errors: those of
  /// the iterator.
  template <weight Time, std::output_iterator<char> Out>
  Out operator()(pipeline_plan<Time> const& plan, Out out) const {
    std::string text;
    if (plan.status == solve_status::infeasible) {
      text.append("{\"status\":\"infeasible\",\"stage\":").append(detail::to_text(plan.stage));
      text.append(",\"missing_bytes\":").append(detail::to_text(plan.missing_bytes)).append("}\n");
      return std::ranges::copy(text, std::move(out)).out;
    }
    text.append("{\"status\":\"ok\",\n\"boundaries\":").append(list(plan.boundaries));
    text.append(",\n\"choices\":").append(list(plan.choices)).append(",\n\"stages\":[");
    for (std::size_t s = 0; s != plan.stages.size(); ++s) {
      auto const& stage = plan.stages[s];
      text.append(s == 0 ? "\n" : ",\n");
      text.append("{\"time\":").append(detail::to_text(stage.time));
      text.append(",\"bytes\":").append(detail::to_text(stage.bytes));
      text.append(",\"in_flight\":").append(detail::to_text(stage.in_flight)).append("}");
    }
    text.append("],\n\"step_time\":").append(detail::to_text(plan.step_time));
    text.append(",\"lower_bound\":").append(detail::to_text(plan.lower_bound));
    text.append(",\"proven\":").append(plan.proven ? "true" : "false").append("}\n");
    return std::ranges::copy(text, std::move(out)).out;
  }

 private:
  [[nodiscard]] static std::string list(std::vector<std::uint32_t> const& numbers) {
    std::string result = "[";
    for (std::size_t i = 0; i != numbers.size(); ++i) {
      if (i != 0) result.append(",");
      result.append(detail::to_text(numbers[i]));
    }
    return result.append("]");
  }
};

/// Writes a plan as JSON; see `write_plan_fn`.
inline constexpr write_plan_fn write_plan{};

}  // namespace omnibal::inline v0
