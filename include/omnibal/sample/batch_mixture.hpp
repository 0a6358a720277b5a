// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// One stream of batches, each of one source.

#include <omnibal/check.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/detail/data_digest.hpp>
#include <omnibal/detail/integer_costs.hpp>
#include <omnibal/rng/permutation.hpp>
#include <omnibal/sample/epoch.hpp>
#include <omnibal/sample/mixture.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <ranges>
#include <string_view>
#include <utility>
#include <vector>

namespace omnibal::inline v0 {

/// A batch that a `batch_mixture` draws: the index of its source, the epoch of the source, and the
/// indices of the samples inside the source.
struct source_batch {
  std::uint32_t source;
  std::uint64_t epoch;
  std::vector<std::uint64_t> samples;

  [[nodiscard]] friend bool operator==(source_batch const&, source_batch const&) = default;
};

/// A stream of batches from several sources, each in proportion to its weight. All samples of a
/// batch are from one source, as encoders or kernels for one kind of data require. A batch is a
/// function of its position, and a checkpoint requires only the position.
///
/// The batches are draws of a `mixture` of the sources, and its bounds and options apply to
/// batches. Weights are therefore shares of the batches, and `options.drawn` counts batches. A
/// source with fewer samples than a batch is skipped: it gets no weight, and `skipped()` lists it.
/// In each epoch of a source, every sample is in at most one batch. The samples that do not fill a
/// batch are left out, in each epoch other samples.
///
/// Complexity of a batch: a draw of the mixture, and the batch. Memory: about 100 bytes for each
/// source. Determinism: portable.
class batch_mixture {
 public:
  /// Constructs a mixture of batches of `batch` samples; `size(source)` is the number of samples of
  /// a source and `weight(source)` its weight. Errors: the errors of `mixture`, and
  /// `std::invalid_argument` if `batch` is zero or if no source with a weight has a batch.
  template <sample_range Sources, size_function<sample_reference<Sources>> Size,
            cost_function<sample_reference<Sources>> Weight>
  batch_mixture(Sources const& sources, Size const& size, Weight const& weight, std::uint64_t batch,
                mixture_options const& options = {})
      : batch_(checked(batch)),
        sizes_(sizes_of(sources, size)),
        mixture_(make(sources, weight, options)),
        seed_(options.seed) {}

  /// Returns the batch at a position. Errors: `std::invalid_argument` if the position is at or
  /// beyond the end.
  [[nodiscard]] source_batch operator()(std::uint64_t position) const {
    mixture_draw const draw = mixture_(position);
    source_batch result{draw.source, draw.epoch, {}};
    std::uint64_t const seed = epoch_seed(seed_, sizes_.size() + draw.source);
    rng::permutation const order(sizes_[draw.source], epoch_seed(seed, draw.epoch));
    result.samples.reserve(static_cast<std::size_t>(batch_));
    for (std::uint64_t k = 0; k != batch_; ++k) {
      result.samples.push_back(order(draw.sample * batch_ + k));
    }
    return result;
  }

  /// Returns the number of batches until the mixture ends, as `mixture::size`.
  [[nodiscard]] std::uint64_t size() const { return mixture_.size(); }
  /// Returns the mixture whose draws are the batches, with their numbers as samples.
  [[nodiscard]] mixture const& batches() const { return mixture_; }
  /// Returns the sources that have a weight but fewer samples than a batch, ascending.
  [[nodiscard]] std::vector<std::uint32_t> const& skipped() const { return skipped_; }

  /// Returns a digest of the sizes, weights and options, which is suitable as
  /// `epoch_sampler_options::contents`.
  [[nodiscard]] std::uint64_t digest() const {
    detail::data_digest result;
    result.add(mixture_.digest());
    result.add(batch_);
    for (std::uint64_t const size : sizes_) result.add(size);
    return result.value();
  }

 private:
  static constexpr std::string_view name = "batch_mixture";

  [[nodiscard]] static std::uint64_t checked(std::uint64_t batch) {
    detail::check_positive(name, "batch", batch);
    return batch;
  }

  template <class Sources, class Size>
  [[nodiscard]] static std::vector<std::uint64_t> sizes_of(Sources const& sources,
                                                           Size const& size) {
    std::vector<std::uint64_t> sizes;
    sizes.reserve(std::ranges::size(sources));
    for (auto&& source : sources) {
      auto const samples = std::invoke(size, source);
      detail::check_weight(name, "size", sizes.size(), samples);
      sizes.push_back(static_cast<std::uint64_t>(samples));
    }
    return sizes;
  }

  /// Returns the mixture of batches, and lists the skipped sources.
  template <class Sources, class Weight>
  [[nodiscard]] mixture make(Sources const& sources, Weight const& weight,
                             mixture_options const& options) {
    auto weights = detail::given_costs(name, "weight", sources, weight);
    std::vector<std::size_t> indices;
    for (std::size_t i = 0; i != sizes_.size(); ++i) {
      indices.push_back(i);
      if (sizes_[i] >= batch_ || weights[i] == 0) continue;
      weights[i] = 0;
      skipped_.push_back(static_cast<std::uint32_t>(i));
    }
    bool const is_empty = !weights.empty() && skipped_.size() != 0 &&
                          std::ranges::all_of(weights, [](auto of) { return of == 0; });
    if (is_empty) {
      detail::throw_invalid(name, "no source with a weight has ", batch_,
                            " samples, which is a batch");
    }
    return mixture(
        indices, [this](std::size_t i) { return sizes_[i] / batch_; },
        [&weights](std::size_t i) { return weights[i]; }, options);
  }

  std::uint64_t batch_;
  std::vector<std::uint64_t> sizes_;
  std::vector<std::uint32_t> skipped_;
  mixture mixture_;
  std::uint64_t seed_;
};

}  // namespace omnibal::inline v0
