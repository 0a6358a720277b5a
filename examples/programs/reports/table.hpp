// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Tables of text with aligned columns, and the numbers in them.

#include <cstdint>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

namespace examples {

/// Columns as wide as their widest cell; the first is aligned to the left, the others to the right.
class table {
 public:
  explicit table(std::vector<std::string> header) { rows_.push_back(std::move(header)); }

  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }

  /// A line between the rows above and those below.
  void add_rule() { rows_.emplace_back(); }

  void print(std::ostream& out) const;

  /// As a table of Markdown, without the lines between rows. Precondition: no cell has a `|`.
  void print_markdown(std::ostream& out) const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

/// `1,234,567`.
[[nodiscard]] std::string counted(std::uint64_t value);

/// With this many digits behind the point.
[[nodiscard]] std::string fixed(double value, int digits);

/// `97.3 %` for 0.973.
[[nodiscard]] std::string percent(double share, int digits);

}  // namespace examples
