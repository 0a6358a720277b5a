#pragma once

/// \file
/// How even and how full batches are, before and after packing.

#include "dataset.hpp"
#include "pack_options.hpp"

#include <omnibal/pack/packing.hpp>
#include <omnibal/resources.hpp>

#include <cstddef>
#include <cstdint>
#include <ostream>
#include <span>

namespace examples {

/// One way of making batches out of the samples that are not oversized.
struct batch_figures {
  std::size_t batches = 0;
  double samples_per_batch = 0;
  /// Batches that hold more than the capacity, their padding included.
  std::size_t over_capacity = 0;
  /// The share of the capacity that samples take, without padding.
  omnibal::resources<2, double> fill{};
  /// The share of the tokens that is padding, mean over the batches.
  double pad_ratio = 0;
  /// The share of a step for which ranks wait, mean over the steps, for images and for tokens.
  omnibal::resources<2, double> dist_ratio{};
};

struct phase_seconds {
  double reading = 0;
  double packing = 0;
  double writing = 0;
};

/// The groups of a packing, dealt to the ranks in this order.
[[nodiscard]] batch_figures measure_packed(dataset const& data, pack_options const& options,
                                           omnibal::packing const& result,
                                           std::span<omnibal::resources<2> const> loads,
                                           std::span<std::uint32_t const> order);

/// The same samples in random order, in batches of a fixed number of samples, the mean number of
/// the packing, each padded to its longest sample: what training without packing does.
[[nodiscard]] batch_figures measure_random(dataset const& data, pack_options const& options,
                                           omnibal::packing const& result);

void print_report(pack_options const& options, omnibal::packing const& result,
                  batch_figures const& before, batch_figures const& after,
                  phase_seconds const& seconds, std::ostream& out);

}  // namespace examples
