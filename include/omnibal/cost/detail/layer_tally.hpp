#pragma once

/// \file
/// From tiles to tokens, and what the operations of a layer cost one rank.

#include <omnibal/check.hpp>
#include <omnibal/config.hpp>
#include <omnibal/cost/layer_cost.hpp>
#include <omnibal/cost/parallel_degrees.hpp>
#include <omnibal/cost/workload.hpp>
#include <omnibal/detail/conversions.hpp>

#include <algorithm>
#include <cstdint>
#include <string_view>

namespace omnibal::inline v0::detail {

constexpr void check_degrees(std::string_view function, parallel_degrees const& degrees) {
  check_width(function, "tensor", degrees.tensor);
  check_width(function, "sequence", degrees.sequence);
  check_width(function, "data", degrees.data);
  check_width(function, "expert", degrees.expert);
  check_multiple(function, "data * sequence", degrees.data * degrees.sequence, "expert",
                 degrees.expert);
}

constexpr void check_bytes(std::string_view function, byte_sizes const& bytes) {
  constexpr std::int64_t most = 64;
  check_between(function, "activation bytes", bytes.activation, 1, most);
  check_between(function, "parameter bytes", bytes.parameter, 1, most);
  check_between(function, "gradient bytes", bytes.gradient, 0, most);
  check_between(function, "optimizer bytes", bytes.optimizer, 0, most);
}

/// Which of the tensor-parallel ranks have a thing.
enum class held {
  whole,    ///< each has all of it
  at_norm,  ///< as `parallel_degrees::norms` says
  split,    ///< each has its share
  expert,   ///< each has its share of the experts of its expert-parallel rank
};

/// What the backward pass needs a kept tensor for.
enum class needed { always, for_weights };

/// What `selective` makes again: nothing, outputs of norms and activations, or unfused scores.
enum class remade { nothing, elementwise, scores };

/// Forward and backward passes of a product of activations with parameters, for each forward pass.
[[nodiscard]] constexpr std::int64_t linear_passes(training_mode training) {
  switch (training) {
    case training_mode::all: return 3;
    case training_mode::input_gradients: return 2;
    case training_mode::forward_only: return 1;
  }
  return 3;
}

/// The same of a product of activations with activations.
[[nodiscard]] constexpr std::int64_t score_passes(training_mode training) {
  return training == training_mode::forward_only ? 1 : 3;
}

/// Bytes of all ranks together, and which of them have them.
struct placed_bytes {
  int128 bytes = 0;
  held where = held::whole;
};

struct int128_work {
  int128 flops = 0;
  int128 moved_bytes = 0;
};

/// The sums of one layer. Everything is given for all ranks together and added for one.
class layer_tally {
 public:
  layer_tally(std::string_view function, parallel_degrees const& degrees, byte_sizes const& bytes,
              training_mode training, remade selective)
      : function_(function),
        degrees_(degrees),
        bytes_(bytes),
        training_(training),
        selective_(selective) {
    check_degrees(function, degrees);
    check_bytes(function, bytes);
  }

  [[nodiscard]] std::string_view function() const { return function_; }
  [[nodiscard]] std::int64_t tensor() const { return degrees_.tensor; }
  [[nodiscard]] std::int64_t expert() const { return degrees_.expert; }
  /// The share of tokens, or of pairs of them, of one sequence-parallel rank.
  [[nodiscard]] int128 in_sequence(int128 amount) const {
    return share_of(amount, degrees_.sequence);
  }
  [[nodiscard]] int128 activation_bytes(int128 numbers) const {
    return numbers * bytes_.activation;
  }

  void parameters(int128 count, held where) { parameters(count, where, count); }
  /// `active` of them are used by each token.
  void parameters(int128 count, held where, int128 active) {
    (where == held::expert ? expert_parameters_ : dense_parameters_) += on_rank(count, where);
    active_parameters_ += share_of(active, where == held::whole ? 1 : degrees_.tensor);
  }

  /// Products of activations with parameters.
  void linear_flops(int128 flops, held where) { linear_flops_ += on_rank(flops, where); }
  /// Products of activations with activations.
  void score_flops(int128 flops) { score_flops_ += on_rank(flops, held::split); }
  void moved(int128 bytes, held where) { moved_bytes_ += on_rank(bytes, where); }

  void keep(int128 bytes, held where, needed why = needed::always) {
    if (is_kept(why)) kept_bytes_ += on_rank(bytes, where);
  }
  /// Keeps what the operation `how`, which costs `again`, makes.
  void keep(int128 bytes, held where, needed why, remade how, int128_work const& again) {
    moved(again.moved_bytes, where);
    keep(bytes, where, why);
    if (how != selective_ || !is_kept(why)) return;
    remade_bytes_ += on_rank(bytes, where);
    remade_work_.flops += on_rank(again.flops, where);
    remade_work_.moved_bytes += on_rank(again.moved_bytes, where);
  }

  /// The bytes into and out of one operation.
  void widest(int128 bytes, held where) {
    widest_bytes_ = std::max(widest_bytes_, on_rank(bytes, where));
  }

  /// The sums. `input` is what is kept where everything is made again.
  [[nodiscard]] layer_cost result(placed_bytes const& input, placed_bytes const& cut) const {
    layer_cost cost;
    int128_work const forward{linear_flops_ + score_flops_, moved_bytes_};
    int128_work const backward{linear_flops_ * (linear_passes(training_) - 1) +
                                   score_flops_ * (score_passes(training_) - 1),
                               moved_bytes_ * (score_passes(training_) - 1)};
    cost.forward = {narrow(forward.flops, "the sum of the forward FLOPs"),
                    narrow(forward.moved_bytes, "the sum of the bytes moved forward")};
    cost.backward = {narrow(backward.flops, "the sum of the backward FLOPs"),
                     narrow(backward.moved_bytes, "the sum of the bytes moved backward")};
    cost.parameters = narrow(dense_parameters_ + expert_parameters_, "the number of parameters");
    cost.active_parameters = narrow(active_parameters_, "the number of active parameters");
    set_state(cost);
    bool const has_backward = training_ != training_mode::forward_only;
    int128 const kept_input =
        has_backward ? std::min(on_rank(input.bytes, input.where), kept_bytes_) : int128{0};
    cost.choices = {choice(kept_bytes_, {}), choice(kept_bytes_ - remade_bytes_, remade_work_),
                    choice(kept_input, has_backward ? forward : int128_work{})};
    cost.cut_bytes = narrow(on_rank(cut.bytes, cut.where), "the sum of the bytes at the cut");
    check_sum(2 * forward.flops + backward.flops, "the sum of all FLOPs");
    check_sum(2 * forward.moved_bytes + backward.moved_bytes, "the sum of all moved bytes");
    return cost;
  }

 private:
  [[nodiscard]] bool is_kept(needed why) const {
    return training_ == training_mode::all ||
           (training_ == training_mode::input_gradients && why == needed::always);
  }

  [[nodiscard]] int128 on_rank(int128 amount, held where) const {
    switch (where) {
      case held::whole: return amount;
      case held::at_norm:
        return degrees_.norms == norm_regions::split ? share_of(amount, degrees_.tensor) : amount;
      case held::split: return share_of(amount, degrees_.tensor);
      case held::expert: return share_of(amount, degrees_.tensor * degrees_.expert);
    }
    return amount;
  }

  /// Bytes of parameters, gradients and optimizer.
  void set_state(layer_cost& cost) const {
    bool const is_trained = training_ == training_mode::all;
    cost.parameter_bytes = narrow(state(bytes_.parameter, sharded_state::parameters),
                                  "the sum of the parameter bytes");
    cost.gradient_bytes = narrow(is_trained ? state(bytes_.gradient, sharded_state::gradients) : 0,
                                 "the sum of the gradient bytes");
    cost.optimizer_bytes =
        narrow(is_trained ? state(bytes_.optimizer, sharded_state::optimizer) : 0,
               "the sum of the optimizer bytes");
    check_sum(int128{cost.parameter_bytes} + cost.gradient_bytes + cost.optimizer_bytes,
              "the sum of the state bytes");
  }

  [[nodiscard]] int128 state(std::int64_t bytes, sharded_state from) const {
    std::int64_t const ranks = degrees_.data * degrees_.sequence;
    bool const is_shared = degrees_.sharding >= from;
    return bytes * (share_of(dense_parameters_, is_shared ? ranks : 1) +
                    share_of(expert_parameters_, is_shared ? ranks / degrees_.expert : 1));
  }

  [[nodiscard]] recompute_cost choice(int128 kept, int128_work const& extra) const {
    return {.kept_bytes = narrow(kept, "the sum of the kept bytes"),
            .transient_bytes =
                narrow(widest_bytes_ + kept_bytes_ - kept, "the sum of the transient bytes"),
            .extra = {narrow(extra.flops, "the sum of the recomputed FLOPs"),
                      narrow(extra.moved_bytes, "the sum of the bytes moved again")}};
  }

  void check_sum(int128 value, std::string_view quantity) const {
    static_cast<void>(narrow(value, quantity));
  }
  [[nodiscard]] std::int64_t narrow(int128 value, std::string_view quantity) const {
    return checked_cast<std::int64_t>(function_, quantity, value);
  }
  std::string_view function_;
  parallel_degrees degrees_;
  byte_sizes bytes_;
  training_mode training_;
  remade selective_;

  int128 dense_parameters_ = 0;
  int128 expert_parameters_ = 0;
  int128 active_parameters_ = 0;
  int128 linear_flops_ = 0;
  int128 score_flops_ = 0;
  int128 moved_bytes_ = 0;
  int128 kept_bytes_ = 0;
  int128 remade_bytes_ = 0;
  int128_work remade_work_{};
  int128 widest_bytes_ = 0;
};

/// Patches and class tokens of a tile.
[[nodiscard]] constexpr std::int64_t tile_tokens(std::string_view function, std::int64_t image_size,
                                                 std::int64_t patch_size,
                                                 std::int64_t class_tokens) {
  constexpr std::int64_t most_pixels = std::int64_t{1} << 16;
  check_between(function, "image_size", image_size, 1, most_pixels);
  check_between(function, "patch_size", patch_size, 1, most_pixels);
  check_between(function, "class_tokens", class_tokens, 0, most_width);
  check_multiple(function, "image_size", image_size, "patch_size", patch_size);
  std::int64_t const side = image_size / patch_size;
  return side * side + class_tokens;
}

/// Throws unless the tiles and images of a workload are possible.
constexpr void check_images(std::string_view function, workload const& batch,
                            std::int64_t tokens_of_tile) {
  check_sequences(function, "images", batch.images);
  check_between(function, "tiles", batch.tiles, 0, most_width);
  if (batch.tiles > 0 && tokens_of_tile == 0) {
    throw_number(function, "tiles", batch.tiles, "but the layer has no size of tiles");
  }
}

/// All tokens of tiles and images.
[[nodiscard]] constexpr sequences image_tokens(std::string_view function, workload const& batch,
                                               std::int64_t tokens_of_tile) {
  check_images(function, batch, tokens_of_tile);
  int128 const tokens = int128{batch.tiles} * tokens_of_tile + batch.images.tokens;
  int128 const squares =
      int128{batch.tiles} * tokens_of_tile * tokens_of_tile + batch.images.squares;
  return {.count = batch.tiles + batch.images.count,
          .tokens = checked_cast<std::int64_t>(function, "the number of tokens", tokens),
          .squares = checked_cast<std::int64_t>(function, "the sum of the squares of the tokens",
                                                squares)};
}

}  // namespace omnibal::inline v0::detail
