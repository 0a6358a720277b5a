// SPDX-License-Identifier: Apache-2.0
#include "pipeline.hpp"

#include "stopwatch.hpp"

#include <omnibal/pipeline/one_f_one_b.hpp>

#include <algorithm>

namespace train_vlm {

namespace {

constexpr int activation_tag = 0, gradient_tag = 1;

void wait_for(c10::intrusive_ptr<::c10d::Work> const& work) {
  if (work) work->wait();
}

}  // namespace

arrivals::arrivals(group& of, int from, int tag, shapes shapes_of_all)
    : group_(&of), from_(from), tag_(tag), shapes_(std::move(shapes_of_all)) {
  expect();
}

void arrivals::expect() {
  tensor_ = at::Tensor();
  work_ = {};
  if (next_ == shapes_.size() || std::ranges::count(shapes_[next_], 0) != 0) return;
  tensor_ = at::empty(shapes_[next_], at::kFloat);
  std::vector<at::Tensor> tensors{tensor_};
  work_ = group_->recv(tensors, from_, tag_);
}

at::Tensor arrivals::take() {
  wait_for(work_);
  at::Tensor const result = tensor_;
  ++next_;
  expect();
  return result;
}

pipeline_stage::pipeline_stage(vlm& model, std::span<std::uint32_t const> boundaries,
                               c10::intrusive_ptr<group> of)
    : model_(&model), group_(std::move(of)), stages_(boundaries.size() - 1) {
  auto const rank = static_cast<std::size_t>(group_->getRank());
  first_ = boundaries[rank];
  last_ = boundaries[rank + 1];
}

std::vector<at::Tensor> pipeline_stage::parameters() const {
  std::vector<at::Tensor> result;
  for (std::size_t layer = first_; layer != last_; ++layer) {
    for (at::Tensor const& parameter : model_->chain_parameters(layer)) result.push_back(parameter);
  }
  return result;
}

arrivals pipeline_stage::arrivals_from(int rank, std::size_t layers, int tag,
                                       std::span<batch const> micro_batches) const {
  arrivals::shapes shapes;
  for (batch const& of : micro_batches) shapes.push_back(model_->chain_shape(layers, of));
  return {*group_, rank, tag, std::move(shapes)};
}

c10::intrusive_ptr<::c10d::Work> pipeline_stage::send(at::Tensor const& tensor, int rank, int tag) {
  // Kept by what is returned.
  std::vector<at::Tensor> tensors{tensor.contiguous()};
  return group_->send(tensors, rank, tag);
}

double pipeline_stage::run(std::span<batch const> micro_batches, double scale) {
  std::size_t const count = micro_batches.size();
  omnibal::one_f_one_b const schedule{stages_, count};
  schedule.check();
  int const rank = group_->getRank();
  auto const of_neighbor = [&](bool has_neighbor) {
    return has_neighbor ? micro_batches : micro_batches.first(0);
  };
  arrivals activations = arrivals_from(rank - 1, first_, activation_tag, of_neighbor(!is_first()));
  arrivals gradients = arrivals_from(rank + 1, last_, gradient_tag, of_neighbor(!is_last()));

  operations_.clear();
  std::vector<kept_pass> passes(count);
  double loss = 0;
  omnibal::stage_progress done;
  while (done.backward != count) {
    auto const kind = schedule.next(static_cast<std::size_t>(rank), done);
    bool const is_forward = kind == omnibal::operation_kind::forward;
    auto const micro_batch =
        schedule.unit(kind, is_forward ? done.forward++ : done.backward++).micro_batch;
    operations_.push_back({kind, micro_batch});
    if (is_forward) {
      loss += forward(micro_batches[micro_batch], passes[micro_batch], activations);
    } else {
      backward(passes[micro_batch], scale, gradients);
    }
  }
  // The gradients that went back; what went forward has come, as its gradients have.
  for (kept_pass const& pass : passes) wait_for(pass.sent);
  return loss;
}

double pipeline_stage::forward(batch const& of, kept_pass& pass, arrivals& activations) {
  if (!is_first()) pass.in = activations.take();
  if (pass.in.defined()) pass.in.requires_grad_();
  stopwatch const watch;
  pass.out = model_->run_chain(first_, last_, pass.in, of);
  if (is_last()) pass.out = vlm::loss_sum(pass.out, of);
  operations_.back().seconds = watch.processor_seconds();
  if (is_last()) return pass.out.item<double>();
  if (pass.out.defined())
    pass.sent = send(pass.out.detach(), group_->getRank() + 1, activation_tag);
  return 0.0;
}

void pipeline_stage::backward(kept_pass& pass, double scale, arrivals& gradients) {
  at::Tensor const gradient = is_last() ? at::Tensor() : gradients.take();
  stopwatch const watch;
  if (is_last()) {
    (pass.out * scale).backward();
  } else if (pass.out.defined()) {
    pass.out.backward(gradient);
  }
  operations_.back().seconds = watch.processor_seconds();
  wait_for(pass.sent);
  at::Tensor const in = pass.in;
  pass = {};
  if (in.defined()) pass.sent = send(in.grad(), group_->getRank() - 1, gradient_tag);
}

}  // namespace train_vlm
