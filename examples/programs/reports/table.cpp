// SPDX-License-Identifier: Apache-2.0
#include "table.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <numeric>

namespace examples {

namespace {

constexpr std::size_t gap = 2;

std::string padding(std::size_t width, std::string const& cell) {
  return std::string(width - std::min(width, cell.size()), ' ');
}

}  // namespace

void table::print(std::ostream& out) const {
  std::vector<std::size_t> widths;
  for (auto const& row : rows_) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t c = 0; c != row.size(); ++c) widths[c] = std::max(widths[c], row[c].size());
  }
  std::size_t const total =
      std::accumulate(widths.begin(), widths.end(), gap * (widths.size() - 1));

  for (auto const& row : rows_) {
    if (row.empty()) {
      out << std::string(total, '-') << '\n';
      continue;
    }
    out << row[0] << padding(widths[0], row[0]);
    for (std::size_t c = 1; c != row.size(); ++c) {
      out << std::string(gap, ' ') << padding(widths[c], row[c]) << row[c];
    }
    out << '\n';
  }
}

void table::print_markdown(std::ostream& out) const {
  for (std::size_t r = 0; r != rows_.size(); ++r) {
    if (rows_[r].empty()) continue;
    out << '|';
    for (std::string const& cell : rows_[r]) out << ' ' << cell << (cell.empty() ? "|" : " |");
    out << '\n';
    if (r != 0) continue;
    out << "|---|";
    for (std::size_t c = 1; c < rows_[0].size(); ++c) out << "--:|";
    out << '\n';
  }
}

std::string counted(std::uint64_t value) {
  std::string digits = std::to_string(value);
  for (std::size_t i = digits.size(); i > 3; i -= 3) digits.insert(i - 3, 1, ',');
  return digits;
}

std::string fixed(double value, int digits) {
  char buffer[64];
  int const size = std::snprintf(buffer, sizeof(buffer), "%.*f", digits, value);
  return std::string(buffer, static_cast<std::size_t>(std::clamp(size, 0, 63)));
}

std::string percent(double share, int digits) { return fixed(100 * share, digits) + " %"; }

}  // namespace examples
