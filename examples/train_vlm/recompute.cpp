// SPDX-License-Identifier: Apache-2.0
#include "recompute.hpp"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>

#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

namespace train_vlm {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

class byte_counter : public c10::MemoryReportingInfoBase {
 public:
  // The types of the totals differ between releases of libtorch.
  virtual void reportMemoryUsage(void*, std::int64_t bytes, std::int64_t, std::int64_t,
                                 c10::Device) {
    add(bytes);
  }
  virtual void reportMemoryUsage(void*, std::int64_t bytes, std::size_t, std::size_t, c10::Device) {
    add(bytes);
  }
  bool memoryProfilingEnabled() const override { return true; }

  void begin_phase() { phases_.push_back(now_); }
  [[nodiscard]] std::vector<std::int64_t> const& phases() const { return phases_; }

 private:
  void add(std::int64_t bytes) {
    now_ += bytes;
    phases_.back() = std::max(phases_.back(), now_);
  }

  std::int64_t now_ = 0;
  std::vector<std::int64_t> phases_{0};
};

/// Of the thread whose memory is measured, which also runs the backward pass.
thread_local byte_counter* counting = nullptr;

struct held_layer : torch::CustomClassHolder {
  std::function<at::Tensor(at::Tensor const&)> run;
};

struct recomputed_function : torch::autograd::Function<recomputed_function> {
  static at::Tensor forward(AutogradContext* context, c10::intrusive_ptr<held_layer> layer,
                            at::Tensor const& input) {
    context->save_for_backward({input});
    context->saved_data["layer"] = at::IValue::make_capsule(layer);
    at::NoGradGuard const guard;
    return layer->run(input);
  }

  static variable_list backward(AutogradContext* context, variable_list const& gradients) {
    begin_memory_phase();
    auto const holder = context->saved_data["layer"].toCapsule();
    auto const& layer = static_cast<held_layer const&>(*holder);
    at::Tensor const input = context->get_saved_variables()[0].detach().requires_grad_();
    at::AutoGradMode const guard(true);
    at::Tensor const output = layer.run(input);
    torch::autograd::backward({output}, {gradients[0]});
    return {at::Tensor(), input.grad()};
  }
};

}  // namespace

at::Tensor recomputed(std::function<at::Tensor(at::Tensor const&)> layer, at::Tensor const& input) {
  auto holder = c10::make_intrusive<held_layer>();
  holder->run = std::move(layer);
  return recomputed_function::apply(std::move(holder), input);
}

memory_use measure_memory(std::function<void()> const& body) {
  auto const counter = std::make_shared<byte_counter>();
  c10::DebugInfoGuard const guard(c10::DebugInfoKind::PROFILER_STATE, counter);
  counting = counter.get();
  body();
  counting = nullptr;
  return {std::ranges::max(counter->phases()), counter->phases()};
}

std::size_t begin_memory_phase() {
  if (counting == nullptr) return 0;
  counting->begin_phase();
  return counting->phases().size() - 1;
}

}  // namespace train_vlm
