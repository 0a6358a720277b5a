// SPDX-License-Identifier: Apache-2.0
#include "capacity_report.hpp"

#include "table.hpp"

#include <omnibal/solve_status.hpp>

#include <array>

namespace examples {

void print_choice(chosen_capacity const& choice, pack_options const& options, std::ostream& out) {
  bool const found = choice.status == omnibal::solve_status::solved;
  out << '\n'
      << (found ? "Chosen for" : "No capacity suits") << " a mean of "
      << fixed(options.target_batch, 2) << " samples per group, up to one more"
      << (found ? ":\n" : ";\nthe nearest: ");
  if (options.kind != sample_kind::text) out << choice.capacity[0] << " images and ";
  out << choice.capacity[1] << " tokens, with " << fixed(choice.samples_per_group, 2)
      << " samples per group.\nBest of " << choice.packings << " packings, " << choice.finalists
      << " of them of all samples.\n";
}

void print_warnings(std::vector<omnibal::capacity_warning<>> const& warnings, std::ostream& out) {
  constexpr std::array kinds{"images", "tokens"};
  for (auto const& warning : warnings) {
    char const* const kind = kinds[warning.kind];
    out << "\nWarning: " << counted(warning.samples) << " samples have " << warning.commonest << ' '
        << kind << ", and a capacity of " << warning.capacity << ' ' << kind
        << " holds no two of them; " << warning.enough << " would.\n";
  }
}

}  // namespace examples
