// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// best_fit_rounds, whose blocks must all run at once, timed beside other work.

#include "device_program.hpp"
#include "samples.hpp"
#include "timing.hpp"

#include <omnibal/cuda/best_fit_rounds.cuh>
#include <omnibal/cuda/device_array.hpp>
#include <omnibal/cuda/device_grouping.hpp>
#include <omnibal/cuda/execution.hpp>
#include <omnibal/pack/packing.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace bench {

/// Packs 1.2 million lengths, by all blocks and by few.
class packing_beside {
 public:
  explicit packing_beside(stopwatch& watch)
      : watch_(watch),
        exec_(omnibal::gpu::on(watch.stream())),
        demands_(omnibal::gpu::upload(exec_, lengths())),
        packed_(exec_, demands_.size()),
        memory_(exec_,
                omnibal::gpu::best_fit_rounds.scratch_bytes(
                    demands_, work.tokens, omnibal::gpu::best_fit_rounds_options{}, packed_.out())),
        scratch_(memory_.span()) {
    for (auto& each : shapes_) {
      each.alone = watch_.median([&] { pack(each.options); });
      print_time(name(each) + ", alone", each.alone, {"itself alone", each.alone});
    }
    expected_ = packed_.download(exec_, "best_fit_rounds");
  }

  /// Prints the times beside something that runs, as multiples of those alone.
  void print_beside(test::comparison& results, std::string const& what) {
    for (auto const& each : shapes_) {
      double const time = watch_.median([&] { pack(each.options); });
      print_time(name(each) + ", beside " + what, time, {"itself alone", each.alone});
      results.expect(packed_.download(exec_, "best_fit_rounds").groups == expected_.groups,
                     name(each) + " gives beside " + what + " what it gives alone");
    }
  }

 private:
  struct shape {
    std::string name;
    omnibal::gpu::best_fit_rounds_options options;
    double alone = 0;
  };

  static constexpr workload const& work = mix_9_4096;

  static std::vector<std::uint32_t> lengths() {
    std::vector<std::uint32_t> result;
    for (sample const& each : work.make(sized(1'200'000))) {
      result.push_back(static_cast<std::uint32_t>(each.tokens));
    }
    return result;
  }
  static std::string name(shape const& of) { return "best_fit_rounds, " + of.name; }

  void pack(omnibal::gpu::best_fit_rounds_options const& options) {
    omnibal::gpu::best_fit_rounds(omnibal::gpu::on(watch_.stream(), scratch_), demands_,
                                  work.tokens, options, packed_.out());
  }

  stopwatch& watch_;
  omnibal::gpu::execution<> exec_;
  omnibal::gpu::device_array<std::uint32_t> demands_;
  omnibal::gpu::device_packing<> packed_;
  omnibal::gpu::device_array<std::byte> memory_;
  omnibal::gpu::given_scratch scratch_;
  std::vector<shape> shapes_{{"all blocks", {}}, {"32 blocks", {.max_blocks = 32}}};
  omnibal::packing expected_;
};

}  // namespace bench
