// SPDX-License-Identifier: Apache-2.0
/// \file
/// Trains a small vision-language model on several processes, and measures what balance is worth:
/// `train_vlm --help`.

#include "launch.hpp"
#include "tasks.hpp"

#include <exception>
#include <iostream>
#include <string>

namespace {

using namespace train_vlm;

bool run(train_options const& options, place_in_world const& place) {
  stop_when_asked();
  trainer of(options, place);
  of.fill(pack_data(options));
  switch (options.task) {
    case task_kind::train: train(options, of); return true;
    case task_kind::compare: compare_forms(options, of); return true;
    case task_kind::replay: replay_ranks(options, of); return true;
    case task_kind::learning: compare_learning(options, of); return true;
    case task_kind::memory:
      if (options.offloads) return check_offloading(options, of);
      select_memory(options, of);
      return true;
    case task_kind::pipeline: return compare_cuts(options, of);
    case task_kind::long_contexts: return compare_long_contexts(options, of);
    case task_kind::gradients: return compare_gradients(options, of);
    case task_kind::curves: break;
  }
  return compare_curves(options, of);
}

}  // namespace

int main(int count, char** words) {
  std::string who = "train_vlm";
  try {
    auto const options = parse_options(count, words);
    if (!options) return 0;
    auto const place = own_place();
    if (!place) return launch(*options, words);
    who += ": rank " + std::to_string(place->rank);
    return run(*options, *place) ? 0 : 1;
  } catch (std::exception const& error) {
    // Of an error of libtorch the first line; the others are its stack. Written at once, as other
    // ranks write too.
    std::string const text = error.what();
    std::cerr << who + ": error: " + text.substr(0, text.find('\n')) + "\n";
    return 1;
  }
}
