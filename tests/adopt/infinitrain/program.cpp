// SPDX-License-Identifier: Apache-2.0
// The lines of docs/evidence/adopt_infinitrain.md, over a stand-in of the trainer's interface.

#include "balanced_rows.hpp"
#include "balanced_stages.hpp"
#include "infini_train/include/dataloader.h"
#include "infini_train/include/nn/parallel/global.h"

#include <omnibal/metrics.hpp>
#include <omnibal/rng/engine.hpp>
#include <omnibal/steps.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <numeric>

// The model of example/llama3, whose MLPs are this wide.
constexpr std::int64_t ffn_hidden = 8192;
constexpr infini_train::nn::TransformerConfig llama3{
    .block_size = 8192,
    .vocab_size = 128256,
    .n_layer = 16,
    .n_head = 32,
    .n_kv_head = 8,
    .n_embd = 2048,
    .activation_type = infini_train::nn::MLPType::kSwiGLU};

namespace infini_train::nn {

/// What the trainer's class of this name knows of its stage.
class TransformerModel {
 public:
  explicit TransformerModel(TransformerConfig const& config)
      : config_(config),
        stage_info_(balanced_stage_info(layer_flops(config_, ffn_hidden, config_.block_size),
                                        nn::parallel::global::GetPipelineParallelSize(),
                                        nn::parallel::pp_rank,
                                        nn::parallel::global::GetVirtualPipelineParallelSize())) {}

  parallel::StageInfo const& stage_info() const { return stage_info_; }

 private:
  TransformerConfig config_;
  parallel::StageInfo stage_info_;
};

}  // namespace infini_train::nn

namespace {

using infini_train::DistributedDataLoader;
using infini_train::nn::parallel::PipelineParallel;
using infini_train::nn::parallel::StageInfo;

void check(bool holds, char const* what) {
  if (holds) return;
  std::printf("wrong: %s\n", what);
  std::exit(1);
}

/// Prints the layers of each stage, checks that all are there in order, and returns the largest
/// time of a stage.
template <class InfoOfRank>
std::int64_t print_stages(char const* name, std::vector<std::int64_t> const& times, int stages,
                          InfoOfRank const& info_of) {
  std::printf("%s:", name);
  int next = 0;
  std::int64_t slowest = 0;
  for (int rank = 0; rank != stages; ++rank) {
    StageInfo const info = info_of(rank);
    check(info.is_first_stage == (rank == 0) && info.is_last_stage == (rank == stages - 1),
          "the first and the last stage");
    check(info.layer_ranges_per_chunk.size() == 1, "one chunk for each stage");
    auto const [first, last] = info.layer_ranges_per_chunk.front();
    check(first == next && first < last, "the layers of a stage");
    next = last;
    slowest = std::max(
        slowest, std::accumulate(times.begin() + first, times.begin() + last, std::int64_t{0}));
    std::printf(" %d", last - first);
  }
  check(next == static_cast<int>(times.size()), "all layers");
  double const mean =
      static_cast<double>(std::accumulate(times.begin(), times.end(), std::int64_t{0})) / stages;
  std::printf(" layers, the slowest stage takes %.2f of the mean\n",
              static_cast<double>(slowest) / mean);
  return slowest;
}

void cut_stages() {
  auto const flops = layer_flops(llama3, ffn_hidden, llama3.block_size);
  auto const layers = static_cast<int>(llama3.n_layer);
  auto const by_count = print_stages("GetStageInfo", flops, 4, [&](int rank) {
    return PipelineParallel::GetStageInfo(layers, 4, rank);
  });
  auto const balanced = print_stages("balanced", flops, 4, [](int rank) {
    infini_train::nn::parallel::pp_rank = rank;
    return infini_train::nn::TransformerModel(llama3).stage_info();
  });
  check(balanced <= by_count, "balanced stages are not slower");

  // Several chunks of each stage: all layers once.
  std::vector<int> owner(flops.size(), -1);
  for (int rank = 0; rank != 4; ++rank) {
    auto const info = balanced_stage_info(flops, 4, rank, 2);
    check(info.layer_ranges_per_chunk.size() == 2, "two chunks for each stage");
    for (auto const& [first, last] : info.layer_ranges_per_chunk) {
      for (int layer = first; layer != last; ++layer) {
        check(owner[static_cast<std::size_t>(layer)] == -1, "a layer in two chunks");
        owner[static_cast<std::size_t>(layer)] = rank;
      }
    }
  }
  check(std::ranges::count(owner, -1) == 0, "all layers in chunks");
}

/// Conversations with up to eight images of 256 tokens each.
std::vector<row_demand> make_samples(std::size_t count) {
  omnibal::rng::engine draws(1);
  std::vector<row_demand> samples;
  for (std::size_t i = 0; i != count; ++i) {
    auto const images = static_cast<std::int64_t>(omnibal::rng::below(draws, 3)) *
                        static_cast<std::int64_t>(omnibal::rng::below(draws, 5));
    auto const text = 40 + static_cast<std::int64_t>(omnibal::rng::below(draws, 600));
    samples.push_back({images, text + 256 * images});
  }
  return samples;
}

/// How the trainer loads.
void load_as_trainer(std::vector<row_demand> const& samples, balanced_rows::row_maker make_row) {
  std::size_t const ddp_rank = 3;
  std::size_t const ddp_world_size = 8;
  auto const rows = std::make_shared<balanced_rows>(
      samples, balanced_rows::loading{.capacity = {10, 4096}, .batch_size = 2, .ranks = 8},
      make_row);
  DistributedDataLoader loader(rows, 2, ddp_rank, ddp_world_size);
  check(loader.begin() != loader.end(), "a loader has batches");
}

void load_rows() {
  constexpr std::size_t ranks = 8;
  constexpr std::size_t batch_size = 2;
  auto const samples = make_samples(6000);

  auto const make_row = [](std::span<std::uint32_t const> of_row) {
    std::vector<std::int64_t> const numbers(of_row.begin(), of_row.end());
    auto const row = std::make_shared<infini_train::Tensor>(numbers);
    return balanced_rows::row{row, row};
  };
  auto const rows = std::make_shared<balanced_rows>(
      samples,
      balanced_rows::loading{.capacity = {10, 4096}, .batch_size = batch_size, .ranks = ranks},
      make_row);

  load_as_trainer(samples, make_row);

  // All ranks load an epoch: every sample comes, and what each rank does in a step.
  for (std::uint64_t epoch = 0; epoch != 2; ++epoch) {
    rows->set_epoch(epoch);
    std::vector<int> times(samples.size(), 0);
    std::vector<omnibal::resources<2>> loads;
    omnibal::steps steps(ranks);
    std::size_t const batches =
        DistributedDataLoader(rows, batch_size, 0, ranks).NumGlobalBatches();
    for (std::size_t batch = 0; batch != batches; ++batch) {
      for (std::size_t rank = 0; rank != ranks; ++rank) {
        DistributedDataLoader const loader(rows, batch_size, rank, ranks);
        auto const [input, target] = *loader.begin().SeekGlobalBatch(batch);
        omnibal::resources<2> load{};
        for (std::int64_t const sample : input->values()) {
          auto const index = static_cast<std::size_t>(sample);
          ++times[index];
          load += omnibal::resources<2>{samples[index].images, samples[index].tokens};
        }
        steps.push(static_cast<std::uint32_t>(loads.size()));
        steps.close();
        loads.push_back(load);
      }
    }
    check(std::ranges::min(times) == 1 && std::ranges::max(times) <= 2, "every sample comes");
    auto const waiting = omnibal::dist_ratio(steps, loads);
    if (epoch == 0) {
      std::int64_t tokens = 0;
      for (auto const& sample : samples) tokens += sample.tokens;
      double const places = static_cast<double>(rows->Size()) * 4096;
      std::printf("6000 samples in %zu rows, %.1f%% of their tokens are padding\n", rows->Size(),
                  100 * (1 - static_cast<double>(tokens) / places));
      std::printf("ranks wait for %.1f%% of a step for images, for %.1f%% for tokens\n",
                  100 * waiting[0], 100 * waiting[1]);
    }
  }

  // A row for each sample, in the order of the file.
  std::vector<omnibal::resources<2>> loads;
  omnibal::steps steps(ranks);
  for (std::size_t first = 0; first + batch_size * ranks <= samples.size();) {
    for (std::size_t rank = 0; rank != ranks; ++rank) {
      omnibal::resources<2> load{};
      for (std::size_t i = 0; i != batch_size; ++i, ++first) {
        load += omnibal::resources<2>{samples[first].images, samples[first].tokens};
      }
      steps.push(static_cast<std::uint32_t>(loads.size()));
      steps.close();
      loads.push_back(load);
    }
  }
  auto const waiting = omnibal::dist_ratio(steps, loads);
  std::printf("a row for each sample: %.1f%% and %.1f%%\n", 100 * waiting[0], 100 * waiting[1]);
}

}  // namespace

int main() {
  cut_stages();
  load_rows();
}
