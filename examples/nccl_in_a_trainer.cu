// SPDX-License-Identifier: Apache-2.0
// A trainer that has a communicator of its data-parallel ranks and a stream evens the loads of its
// ranks: before the forward pass the tokens of samples move to where they are trained, and one
// number for each sample, such as its loss, comes back. nvcc -std=c++20 -c; see
// docs/guides/distributed.md.

#include <omnibal/cuda/nccl/communicator_ref.hpp>
#include <omnibal/cuda/nccl/exchange_exact.cuh>
#include <omnibal/cuda/nccl/post_balance.cuh>

namespace gpu = omnibal::gpu;
namespace nccl = omnibal::nccl;

class balanced_step {
 public:
  balanced_step(ncclComm_t trainers, cudaStream_t stream, std::size_t max_samples)
      : comm_(trainers),
        exec_(gpu::on(stream)),
        plan_(exec_, {.ranks = comm_.size(), .max_samples = max_samples}),
        report_(exec_, 1) {}

  /// What each sample costs, and its tokens with where they begin: all in device memory.
  void before_forward(gpu::device_span<std::int64_t const> costs,
                      nccl::device_payloads<std::int32_t const> const& tokens,
                      nccl::device_payloads<std::int32_t> const& trained_here) {
    nccl::post_balance(exec_, comm_, costs, tokens, plan_, trained_here, report_);
  }

  /// `of_trained` has a number for each sample that was trained here, `of_own` gets those of the
  /// samples that this rank has read.
  void after_backward(gpu::device_span<float const> of_trained, gpu::device_span<float> of_own) {
    nccl::exchange_exact(exec_, comm_, plan_.view().inverse(),
                         nccl::device_rows<float const>{of_trained},
                         nccl::device_rows<float>{of_own}, report_);
    comm_.wait(exec_.stream());
  }

 private:
  nccl::communicator_ref comm_;
  gpu::execution<> exec_;
  nccl::device_plan<> plan_;
  gpu::device_array<nccl::exchange_report> report_;
};
