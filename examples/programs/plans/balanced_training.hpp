// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// A step of the toy model in which each phase has its own arrangement of the samples.

#include "toy_model.hpp"

#include <omnibal/comm/collectives.hpp>
#include <omnibal/comm/communicator.hpp>
#include <omnibal/comm/ragged.hpp>
#include <omnibal/exchange/exchange_plan.hpp>
#include <omnibal/exchange/exchange_samples.hpp>
#include <omnibal/exchange/make_orchestration.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace examples {

/// The pieces of a rank's samples of one kind, in order.
[[nodiscard]] inline omnibal::ragged<std::uint64_t> contents_of(
    std::vector<multimodal_sample> const& samples, modality kind) {
  omnibal::ragged<std::uint64_t> contents;
  for (multimodal_sample const& sample : samples) {
    for (std::size_t p = 0; p != sample.pieces.size(); ++p) {
      if (sample.pieces[p].kind == kind) contents.push(content_of(sample, p));
    }
  }
  return contents;
}

/// This rank's gradients: inputs go to the encoders, outputs to the language model, gradients of
/// outputs back to the encoders.
template <omnibal::exchanging_communicator Comm>
[[nodiscard]] toy_gradients train_balanced(Comm& comm, toy_model const& model,
                                           omnibal::orchestration const& plans,
                                           std::vector<multimodal_sample> const& samples) {
  using omnibal::exchange_samples;
  auto const rank = static_cast<std::size_t>(comm.rank());
  std::vector<std::vector<std::uint64_t>> scripts;
  for (multimodal_sample const& sample : samples) scripts.push_back(script_of(sample));
  auto const my_scripts = exchange_samples(comm, plans.samples, scripts);

  std::array<omnibal::ragged<std::uint64_t>, modality_count> contents;
  std::array<std::vector<std::uint64_t>, modality_count> outputs;
  for (std::size_t m = 0; m != modality_count; ++m) {
    auto const kind = static_cast<modality>(m);
    auto const& routes = plans.encoders[m];
    contents[m] = exchange_samples(comm, routes.inputs, contents_of(samples, kind));
    std::vector<std::uint64_t> encoded;
    for (auto const content : contents[m]) encoded.push_back(model.encode(kind, content));
    outputs[m] = exchange_samples(comm, routes.outputs, encoded);
  }

  toy_gradients sum;
  auto gradients = outputs;
  for (std::size_t s = 0; s != my_scripts.size(); ++s) {
    std::array<std::span<std::uint64_t const>, modality_count> of_sample;
    std::array<std::span<std::uint64_t>, modality_count> to_sample;
    for (std::size_t m = 0; m != modality_count; ++m) {
      auto const offsets = plans.encoders[m].pieces_of_samples(plans.samples, rank);
      std::size_t const count = offsets[s + 1] - offsets[s];
      of_sample[m] = std::span(outputs[m]).subspan(offsets[s], count);
      to_sample[m] = std::span(gradients[m]).subspan(offsets[s], count);
    }
    model.train(my_scripts[s], of_sample, to_sample, sum);
  }
  for (std::size_t m = 0; m != modality_count; ++m) {
    auto const back = exchange_samples(comm, plans.encoders[m].outputs.inverse(), gradients[m]);
    for (std::size_t p = 0; p != back.size(); ++p) {
      toy_model::train_encoder(static_cast<modality>(m), contents[m][p], back[p], sum);
    }
  }
  return sum;
}

/// The sum over all ranks, on all ranks.
template <omnibal::communicator Comm>
[[nodiscard]] toy_gradients sum_over_ranks(Comm& comm, toy_gradients const& own) {
  toy_gradients sum;
  for (toy_gradients const& of_rank : omnibal::all_gather(comm, own)) sum += of_rank;
  return sum;
}

}  // namespace examples
