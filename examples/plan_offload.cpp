// SPDX-License-Identifier: Apache-2.0
/// \file
/// Chooses the activations to keep, to recompute and to offload for layers from the standard input,
/// for trainers in other languages: `plan_offload RATE BUDGET < layers.txt`. The input has a line
/// `layer FORWARD_TIME BACKWARD_TIME FORWARD_TRANSIENT BACKWARD_TRANSIENT` for each layer, and
/// behind it a line `module BYTES TIME optional` or `module BYTES TIME required` for each module.
/// RATE is in bytes for a unit of time. The output has a line with the added time, its lower bound
/// and the peak, and a line for each layer: the bytes during its forward and backward pass, and the
/// choices of its modules. `plan_offload RATE` without a budget measures choices: each line of a
/// module then ends with its choice.

#include <omnibal/recompute/measure_activations.hpp>
#include <omnibal/recompute/select_activations.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <iostream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace {

constexpr std::array<std::string_view, 3> choice_names{"keep", "recompute", "offload"};

/// The layers of the input, and the choices of a plan to measure.
struct given_layers {
  std::vector<omnibal::activation_layer<double>> layers;
  std::vector<std::vector<omnibal::activation_choice>> choices;
};

omnibal::activation_choice choice_of(std::string const& word) {
  for (std::size_t i = 0; i != choice_names.size(); ++i) {
    if (word == choice_names[i]) return static_cast<omnibal::activation_choice>(i);
  }
  throw std::runtime_error("the choice is " + word + ", must be keep, recompute or offload");
}

given_layers read_layers(std::istream& in, bool has_choices) {
  given_layers result;
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string kind;
    words >> kind;
    if (kind == "layer") {
      auto& layer = result.layers.emplace_back();
      result.choices.emplace_back();
      words >> layer.forward_time >> layer.backward_time >> layer.forward_transient_bytes >>
          layer.backward_transient_bytes;
    } else if (kind == "module" && !result.layers.empty()) {
      auto& part = result.layers.back().modules.emplace_back();
      std::string need;
      std::string choice;
      words >> part.bytes >> part.recompute_time >> need;
      if (need == "required") part.need = omnibal::module_need::required;
      if (has_choices && words >> choice) result.choices.back().push_back(choice_of(choice));
    } else {
      words.setstate(std::ios::failbit);
    }
    if (!words) throw std::runtime_error("cannot read the line: " + line);
  }
  return result;
}

void run(double rate, std::string const& budget) {
  omnibal::offload_link const link{.bytes_per_time = rate};
  auto given = read_layers(std::cin, budget.empty());
  double bound = 0;
  if (!budget.empty()) {
    auto const plan = omnibal::select_activations(given.layers, std::stoll(budget), link);
    if (plan.status != omnibal::solve_status::solved) {
      throw std::runtime_error("the budget lacks " + std::to_string(plan.missing_bytes) + " bytes");
    }
    given.choices = plan.choices;
    bound = plan.lower_bound;
  }
  auto const usage = omnibal::measure_activations(given.layers, given.choices, link);
  std::cout << usage.added_time << ' ' << bound << ' ' << usage.peak_bytes << '\n';
  for (std::size_t i = 0; i != given.layers.size(); ++i) {
    std::cout << usage.forward_bytes[i] << ' ' << usage.backward_bytes[i];
    for (auto const choice : given.choices[i]) {
      std::cout << ' ' << choice_names[static_cast<std::size_t>(choice)];
    }
    std::cout << '\n';
  }
}

}  // namespace

int main(int count, char** words) {
  try {
    if (count != 2 && count != 3) {
      throw std::runtime_error("usage: plan_offload RATE [BUDGET] < layers.txt");
    }
    run(std::stod(words[1]), count == 3 ? words[2] : "");
    return 0;
  } catch (std::exception const& error) {
    std::cerr << "plan_offload: error: " << error.what() << '\n';
    return 1;
  }
}
