// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Output of a timeline for Perfetto and chrome://tracing.

#include <omnibal/check.hpp>
#include <omnibal/detail/put_text.hpp>
#include <omnibal/pipeline/schedule.hpp>

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <ranges>
#include <string>
#include <string_view>
#include <utility>

namespace omnibal::inline v0::detail {

template <class Operation>
inline constexpr bool is_timed_operation = false;
template <class T>
inline constexpr bool is_timed_operation<timed_operation<T>> = true;

/// Returns `text` in quotes, with quotes, backslashes and control characters escaped.
[[nodiscard]] inline std::string json_string(std::string_view text) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string result = "\"";
  for (char const character : text) {
    auto const code = static_cast<unsigned char>(character);
    if (character == '"' || character == '\\') {
      result.append("\\").push_back(character);
    } else if (code < 0x20) {
      result.append("\\u00").push_back(digits[code / 16]);
      result.push_back(digits[code % 16]);
    } else {
      result.push_back(character);
    }
  }
  return result.append("\"");
}

/// Returns `value` times ten to the power of `shift` as a decimal; exact for integers.
/// Precondition: `value` is not negative.
template <class T>
[[nodiscard]] std::string shifted_decimal(T value, int shift) {
  if constexpr (std::floating_point<T>) {
    T factor = 1;
    for (int digit = shift < 0 ? -shift : shift; digit != 0; --digit) factor *= 10;
    return to_text(shift < 0 ? value / factor : value * factor);
  } else {
    std::string digits = to_text(value);
    if (shift >= 0)
      return value == 0 ? digits : digits.append(static_cast<std::size_t>(shift), '0');
    auto const places = static_cast<std::size_t>(-shift);
    std::size_t const missing = digits.size() <= places ? places + 1 - digits.size() : 0;
    digits = std::string(missing, '0').append(digits);
    std::string result(digits, 0, digits.size() - places);
    result.push_back('.');
    return result.append(digits, digits.size() - places);
  }
}

}  // namespace omnibal::inline v0::detail

namespace omnibal::inline v0 {

/// The unit of the times of a timeline.
enum class time_unit { nanoseconds, microseconds, milliseconds, seconds };

struct write_trace_options {
  time_unit unit = time_unit::nanoseconds;
  /// The name of the pipeline in the viewer, in UTF-8.
  std::string process = "pipeline";
  /// The process id, which distinguishes pipelines that are shown together.
  std::uint32_t process_id = 0;
};

/// A range of `timed_operation`.
template <class Range>
concept timeline_range = std::ranges::input_range<Range const> &&
    detail::is_timed_operation<std::ranges::range_value_t<Range const>>;

/// A functor that returns the name of a stage.
template <class Function>
concept stage_namer = std::regular_invocable<Function const&, std::uint32_t> &&
    std::convertible_to<std::invoke_result_t<Function const&, std::uint32_t>, std::string>;

/// Names stages by their number: "stage 3".
struct number_stages {
  [[nodiscard]] std::string operator()(std::uint32_t stage) const {
    return "stage " + detail::to_text(stage);
  }
};

struct write_trace_fn {
  /// Writes operations as JSON in Chrome's trace event format to an output iterator of `char`, and
  /// returns its end. Each stage is a thread with the name `stage_name(stage)`. Each operation is a
  /// complete event that contains its micro-batch and its chunk. Integer times are written exactly,
  /// and floating-point times with the shortest digits that read back as the same number.
  ///
  /// Complexity: linear. Memory: a few strings. Determinism: portable for integers. Errors:
  /// `std::invalid_argument` if the begin of an operation is negative or not finite or if its end
  /// is before its begin. Source: "Trace event format", chromium.org.
  template <timeline_range Timeline, stage_namer StageName, std::output_iterator<char> Out>
  Out operator()(Timeline const& timeline, write_trace_options const& options,
                 StageName const& stage_name, Out out) const {
    std::string const process = detail::to_text(options.process_id);
    std::uint32_t stages = 0;
    detail::put_text(out, "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n");
    detail::put_text(out, metadata("process_name", process, 0, options.process));
    std::size_t index = 0;
    for (auto const& operation : timeline) {
      detail::check_weight(name, "begin", index, operation.begin);
      detail::check_weight(name, "duration", index, operation.end - operation.begin);
      stages = std::max(stages, operation.stage + 1);
      detail::put_text(out, ",\n");
      detail::put_text(out, event(operation, process, options.unit));
      ++index;
    }
    for (std::uint32_t stage = 0; stage != stages; ++stage) {
      detail::put_text(out, ",\n");
      detail::put_text(out,
                       metadata("thread_name", process, stage, std::string(stage_name(stage))));
    }
    detail::put_text(out, "\n]}\n");
    return out;
  }

  /// Writes operations with the names of `number_stages`.
  template <timeline_range Timeline, std::output_iterator<char> Out>
  Out operator()(Timeline const& timeline, write_trace_options const& options, Out out) const {
    return (*this)(timeline, options, number_stages{}, std::move(out));
  }

  /// Writes operations with default options.
  template <timeline_range Timeline, std::output_iterator<char> Out>
  Out operator()(Timeline const& timeline, Out out) const {
    return (*this)(timeline, write_trace_options{}, number_stages{}, std::move(out));
  }

 private:
  static constexpr std::string_view name = "write_trace";

  [[nodiscard]] static std::string metadata(std::string_view kind, std::string_view process,
                                            std::uint32_t thread, std::string_view value) {
    return detail::joined_text("{\"ph\":\"M\",\"name\":\"", kind, "\",\"pid\":", process,
                               ",\"tid\":", thread,
                               ",\"args\":{\"name\":", detail::json_string(value), "}}");
  }

  template <class T>
  [[nodiscard]] static std::string event(timed_operation<T> const& operation,
                                         std::string_view process, time_unit unit) {
    constexpr std::array<std::string_view, 3> kinds{"forward", "backward", "weight"};
    std::string_view const kind = kinds[static_cast<std::size_t>(operation.kind)];
    return detail::joined_text(
        "{\"ph\":\"X\",\"name\":\"", kind, " ", operation.micro_batch, "\",\"cat\":\"", kind,
        "\",\"pid\":", process, ",\"tid\":", operation.stage,
        ",\"ts\":", microseconds(operation.begin, unit),
        ",\"dur\":", microseconds(operation.end - operation.begin, unit),
        ",\"args\":{\"micro_batch\":", operation.micro_batch, ",\"chunk\":", operation.chunk, "}}");
  }

  /// Converts a time to microseconds, the unit of the format.
  template <class T>
  [[nodiscard]] static std::string microseconds(T time, time_unit unit) {
    int const digits = 3 * (static_cast<int>(unit) - static_cast<int>(time_unit::microseconds));
    return detail::shifted_decimal(time, digits);
  }
};

/// Writes a timeline for Perfetto; see `write_trace_fn`.
inline constexpr write_trace_fn write_trace{};

}  // namespace omnibal::inline v0
