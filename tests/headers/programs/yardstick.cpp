// SPDX-License-Identifier: Apache-2.0
// Containers and sorting of the standard library alone: the yardstick of compile times.

#include <algorithm>
#include <cstddef>
#include <functional>
#include <map>
#include <ranges>
#include <string>
#include <unordered_map>
#include <vector>

std::vector<std::string> sorted(std::vector<std::string> names) {
  std::map<std::string, std::vector<int>> places;
  std::unordered_map<std::string, std::size_t> counts;
  for (std::string const& name : names) {
    ++counts[name];
    places[name].push_back(1);
  }
  std::stable_sort(names.begin(), names.end());
  std::ranges::sort(names, std::greater<>(), &std::string::size);
  std::nth_element(names.begin(), names.begin(), names.end());
  return names;
}
