// SPDX-License-Identifier: Apache-2.0
#include "activation_mover.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include <c10/core/CPUAllocator.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/saved_variable_hooks.h>

namespace train_vlm {

namespace {

/// The mover that notes the saved tensors of this thread.
thread_local activation_mover* noting = nullptr;

void const* storage_of(at::Tensor const& tensor) { return tensor.storage().unsafeGetStorageImpl(); }

/// Holds a saved tensor, whose storage may be empty in between.
struct noted_tensor : torch::autograd::SavedVariableHooks {
  void call_pack_hook(at::Tensor const& tensor) override {
    held = tensor.detach();
    noting->note(held);
  }
  at::Tensor call_unpack_hook() override { return held; }

  at::Tensor held;
};

/// Python's engine gives autograd its saved-tensor hooks in the same way.
class engine_with_hooks : public torch::autograd::Engine {
 public:
  std::unique_ptr<torch::autograd::SavedVariableHooks> get_default_saved_variable_hooks() override {
    if (noting == nullptr) return nullptr;
    return std::make_unique<noted_tensor>();
  }

  static torch::autograd::Engine& get() {
    static engine_with_hooks engine;
    return engine;
  }
};

}  // namespace

far_memory::far_memory() : file_(std::tmpfile()) {
  if (!file_) throw std::runtime_error("cannot open a temporary file for offloaded tensors");
}

long far_memory::write(void const* bytes, std::size_t count) {
  std::fseek(file_.get(), 0, SEEK_END);
  long const begin = std::ftell(file_.get());
  if (begin < 0 || std::fwrite(bytes, 1, count, file_.get()) != count) {
    throw std::runtime_error("cannot write offloaded tensors");
  }
  return begin;
}

void far_memory::read(long begin, void* bytes, std::size_t count) {
  std::fseek(file_.get(), begin, SEEK_SET);
  if (std::fread(bytes, 1, count, file_.get()) != count) {
    throw std::runtime_error("cannot read offloaded tensors");
  }
}

activation_mover::activation_mover(std::vector<link_bytes> link, std::vector<moved_parts> moved,
                                   std::vector<at::Tensor> const& others)
    : link_(std::move(link)), moved_(std::move(moved)), saved_(moved_.size()) {
  for (at::Tensor const& one : others) others_.insert(storage_of(one));
  torch::autograd::set_default_engine_stub(engine_with_hooks::get);
}

void activation_mover::begin_forward(std::size_t layer, at::Tensor const& input) {
  layer_ = layer;
  input_ = input.defined() ? storage_of(input) : nullptr;
  noting = this;
}

void activation_mover::note(at::Tensor const& tensor) {
  auto const& storage = tensor.storage();
  void const* const own = storage_of(tensor);
  if (others_.contains(own)) return;
  auto& saved = saved_[layer_];
  // A weak pointer keeps the address, so that no other storage has it.
  auto const is_same = [&](saved_storage const& one) {
    return one.storage._unsafe_get_target() == own;
  };
  if (std::ranges::any_of(saved, is_same)) return;
  auto const bytes = static_cast<std::int64_t>(storage.nbytes());
  saved.push_back({storage.getWeakStorageImpl(), bytes, own == input_, bytes});
  if (is_moved(saved.back(), layer_)) queue_.push_back({layer_, saved.size() - 1});
}

void activation_mover::end_forward() {
  noting = nullptr;
  send(link_[layer_].forward);
}

void activation_mover::send(std::int64_t bytes) {
  while (bytes != 0 && !queue_.empty()) {
    saved_storage& one = at(queue_.front());
    std::int64_t const part = std::min(bytes, one.left);
    bytes -= part;
    one.left -= part;
    if (one.left != 0) return;
    queue_.pop_front();
    auto const storage = one.storage.lock();
    if (!storage) continue;
    c10::DataPtr const old = storage->set_data_ptr(c10::DataPtr());
    one.place = far_.write(old.get(), static_cast<std::size_t>(one.bytes));
  }
}

void activation_mover::fetch(saved_storage& one) {
  if (one.place < 0) return;
  auto const storage = one.storage.lock();
  if (!storage) return;
  auto const count = static_cast<std::size_t>(one.bytes);
  c10::DataPtr bytes = c10::GetCPUAllocator()->allocate(count);
  far_.read(one.place, bytes.get(), count);
  one.place = -1;
  static_cast<void>(storage->set_data_ptr(std::move(bytes)));
}

void activation_mover::begin_backward(std::size_t layer) {
  if (layer + 1 != saved_.size()) send(link_[layer + 1].backward);
  // The bytes of earlier layers that are on the device when the pass of this layer ends.
  std::int64_t needed = 0;
  for (std::size_t i = 0; i != layer; ++i) {
    needed = std::max<std::int64_t>(0, needed - link_[i].backward);
    for (saved_storage const& one : saved_[i]) needed += is_moved(one, i) ? one.bytes : 0;
  }
  for (saved_storage& one : saved_[layer]) fetch(one);
  std::unordered_set<saved_storage const*> here;
  for (std::size_t i = layer; i-- != 0 && needed > 0;) {
    for (std::size_t k = saved_[i].size(); k-- != 0 && needed > 0;) {
      saved_storage& one = saved_[i][k];
      if (!is_moved(one, i)) continue;
      fetch(one);
      here.insert(&one);
      needed -= one.bytes;
    }
  }
  std::erase_if(queue_, [&](place_in_step const& one) {
    return one.layer >= layer || here.contains(&at(one));
  });
}

}  // namespace train_vlm
