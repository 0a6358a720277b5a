// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The types of layer models: micro-batches, configurations, parallel degrees, bytes and costs.

#include <omnibal/check.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/config.hpp>
#include <omnibal/cost/attention_span.hpp>
#include <omnibal/detail/model_limits.hpp>
#include <omnibal/resources.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace omnibal::inline v0 {

/// Sequences whose tokens attend only to tokens of the same sequence: packed documents, images,
/// clips of sound. Costs depend only on the tokens, the sum of the squares of the lengths and, for
/// a resampler, the number of sequences. Layers with windows or chunks also need `spans`.
struct sequences {
  std::int64_t count = 0;
  std::int64_t tokens = 0;
  std::int64_t squares = 0;
  /// The sums of squares within the windows and chunks of the model, if it has any. A layer looks
  /// for the entry of its span. If there is none, the layer computes the squares if all sequences
  /// have the same length or if none can be longer than the span; otherwise it throws.
  std::array<span_squares, max_attention_spans> spans{};

  [[nodiscard]] friend bool operator==(sequences const&, sequences const&) = default;
};

/// The context of a cross-attention. `tokens` is the number of context tokens. `pairs` is the
/// number of text tokens times the number of visible context tokens, summed over the documents.
struct cross_context {
  std::int64_t tokens = 0;
  std::int64_t pairs = 0;

  [[nodiscard]] friend bool operator==(cross_context const&, cross_context const&) = default;
};

/// One micro-batch of one data-parallel rank. Each layer reads the members for its kind of tokens.
struct micro_batch_work {
  /// The number of image tiles; a tile has the fixed size of the vision tower.
  std::int64_t tiles = 0;
  /// Images with their own sizes, measured in patches (and class tokens) of the vision tower.
  sequences images{};
  /// Clips of sound, measured in tokens of the audio tower.
  sequences clips{};
  /// Documents of the language model, including the tokens of images and clips.
  sequences documents{};
  /// The context of the cross-attention in the language model.
  cross_context context{};

  [[nodiscard]] friend bool operator==(micro_batch_work const&, micro_batch_work const&) = default;
};

namespace detail {

/// Throws unless sequences with these numbers can exist.
constexpr void check_sequences(std::string_view function, std::string_view argument,
                               sequences const& given) {
  auto const fail = [&](std::string_view member, std::int64_t value, auto... rule) {
    throw_number(function, joined_text(argument, member), value, rule...);
  };
  int128 const tokens = given.tokens;
  int128 const squares = given.squares;
  if (given.tokens < 0 || given.tokens > max_tokens) {
    fail(".tokens", given.tokens, "must be from 0 to ", max_tokens);
  }
  if (given.count < 0 || given.count > given.tokens) {
    fail(".count", given.count, "must be from 0 to the tokens, ", given.tokens);
  }
  if (squares < tokens || squares > tokens * tokens) {
    fail(".squares", given.squares, "must be between the tokens, ", given.tokens,
         ", and their square");
  }
  // For a given number of sequences, the sum of squares is smallest if all lengths are equal.
  if (given.count > 0 && squares * given.count < tokens * tokens) {
    fail(".squares", given.squares, "less than ", given.count, " sequences of ", given.tokens,
         " tokens can have");
  }
  for (span_squares const& within : given.spans) {
    if (within.span.kind == span_kind::whole) continue;
    if (within.span.tokens < 1 || within.span.tokens > max_tokens) {
      fail(".spans.span.tokens", within.span.tokens, "must be from 1 to ", max_tokens);
    }
    if (within.squares < given.tokens || within.squares > given.squares) {
      fail(".spans.squares", within.squares, "must be between the tokens, ", given.tokens,
           ", and the squares, ", given.squares);
    }
  }
}

/// Returns the sum of `span.squares(length)` over the sequences. Precondition: `check_sequences`
/// accepts them. Errors: `std::invalid_argument` if the sum does not follow from the sequences.
[[nodiscard]] constexpr int128 squares_within(std::string_view function, std::string_view argument,
                                              sequences const& given, attention_span const& span) {
  int128 const tokens = given.tokens;
  int128 const squares = given.squares;
  if (span.kind == span_kind::whole || squares <= int128{span.tokens} * span.tokens) return squares;
  for (span_squares const& within : given.spans) {
    if (within.span == span) return within.squares;
  }
  bool const is_equal = given.count > 0 && squares * given.count == tokens * tokens;
  if (is_equal) return int128{given.count} * span.squares(given.tokens / given.count);
  throw_invalid(function, argument, ".spans has no squares for ", text_of(span),
                "; pass attention_spans(model) to sequences_of");
}

}  // namespace detail

struct sequences_of_fn {
  /// Returns the number, the tokens and the sum of squares of the lengths of samples. Samples
  /// without tokens are not counted. `spans` lists the windows and chunks of the model, as
  /// `attention_spans(model)` returns them; the result has a sum of squares for each of them.
  ///
  /// Complexity: linear. Allocates nothing. Determinism: portable. Errors: `std::invalid_argument`
  /// for a negative length, for a window or chunk without tokens, and for more than
  /// `max_attention_spans` of them; `std::overflow_error` for a sum above 2^63 - 1.
  template <sample_range Samples, class Length = std::identity>
    requires cost_function<Length, sample_reference<Samples>> &&
        integral_measure<demand_result<Length, sample_reference<Samples>>>
  [[nodiscard]] constexpr sequences operator()(Samples const& samples, Length const& length = {},
                                               std::span<attention_span const> spans = {}) const {
    sequences result;
    set_spans(result, spans);
    std::size_t index = 0;
    for (auto&& sample : samples) {
      auto const tokens =
          detail::to_working<std::int64_t>({name, "length", index}, std::invoke(length, sample));
      detail::check_weight(name, "length", index, tokens);
      std::int64_t square = 0;
      if (__builtin_mul_overflow(tokens, tokens, &square)) {
        detail::throw_overflow(name, detail::joined_text("the square of length[", index, "]"));
      }
      detail::checked_add(name, "the sum of the lengths", result.tokens, tokens);
      detail::checked_add(name, "the sum of the squares", result.squares, square);
      for (span_squares& within : result.spans) {
        if (within.span.kind == span_kind::whole) break;
        // No sum of squares within a span exceeds the sum of all squares.
        within.squares += within.span.squares(tokens);
      }
      if (tokens > 0) ++result.count;
      ++index;
    }
    return result;
  }

 private:
  static constexpr std::string_view name = "sequences_of";

  /// Writes each distinct window and chunk to `result.spans`. Throws if there are too many.
  static constexpr void set_spans(sequences& result, std::span<attention_span const> spans) {
    for (attention_span const& span : spans) {
      span.check(name, "spans.tokens");
      if (span.kind == span_kind::whole) continue;
      auto* const entry = detail::find_entry(
          result.spans, span, [](span_squares const& within) { return within.span; });
      if (entry == nullptr) {
        detail::throw_number(name, "spans", static_cast<std::int64_t>(spans.size()),
                             "has more than ", std::int64_t{max_attention_spans},
                             " different windows and chunks");
      }
      entry->span = span;
    }
  }
};

/// Returns sums over the lengths of samples; see `sequences_of_fn`.
inline constexpr sequences_of_fn sequences_of{};

/// `count` sequences of `length` tokens each.
struct repeated_length {
  std::int64_t count = 0;
  std::int64_t length = 0;
};

struct equal_sequences_fn {
  /// Returns sequences of equal length, such as `equal_sequences({.count = 4, .length = 1024})`.
  ///
  /// Complexity: constant. Allocates nothing. Determinism: portable. Errors:
  /// `std::invalid_argument` for a number that is negative or above 2^40, `std::overflow_error` if
  /// the sum of squares exceeds 2^63 - 1.
  [[nodiscard]] constexpr sequences operator()(repeated_length const& given) const {
    detail::check_between("equal_sequences", "count", given.count, 0, detail::max_tokens);
    detail::check_between("equal_sequences", "length", given.length, 0, detail::max_tokens);
    sequences result{.count = given.length == 0 ? 0 : given.count};
    if (__builtin_mul_overflow(given.count, given.length, &result.tokens) ||
        __builtin_mul_overflow(result.tokens, given.length, &result.squares)) {
      detail::throw_overflow("equal_sequences", "the sum of the squares");
    }
    return result;
  }
};

/// Returns sequences of equal length; see `equal_sequences_fn`.
inline constexpr equal_sequences_fn equal_sequences{};

/// The tokens of the sequence to which a token attends.
enum class attention_mask {
  causal,  ///< the tokens before it: half of the products if the kernel exploits the mask
  full,    ///< all tokens
};

/// The kernel that computes attention.
enum class attention_kernel {
  flash,    ///< keeps no scores and skips the products that a causal mask hides
  unfused,  ///< computes and keeps the whole square of scores
};

/// The gate by which the output of attention is multiplied.
enum class attention_gate {
  none,
  each_head,    ///< a number for each head
  each_number,  ///< a number for each number of the output (Qwen3-Next)
};

/// The source of the keys and values of an attention.
enum class key_value_source {
  own,            ///< a product for keys and a product for values
  keys,           ///< values are the keys before their norm (global layers of Gemma 4)
  earlier_layer,  ///< keys and values of an earlier layer (Gemma 3n)
};

/// Norms of queries and keys.
enum class query_key_norm {
  none,
  each_head,    ///< one set of weights for all heads (Qwen3)
  whole_width,  ///< a weight for each number (InternViT-6B)
};

/// The kind of a norm. RMS norms have a weight for each number, layer norms also a bias.
enum class norm_kind {
  rms,
  layer,
  unweighted,  ///< neither weights nor biases (OLMo 1)
};

/// The place of the norms of the attention and of the feed-forward part.
enum class norm_placement {
  before,  ///< before each of the two parts: most models
  after,   ///< after each part, before the residual sum (OLMo 2)
  both,    ///< two norms of each part (Gemma 2, Gemma 3)
  /// One norm before both parts; the outputs of both parts are added to the same residual sum
  /// (Cohere, Falcon).
  parallel,
};

/// The kind of an MLP. A gated MLP (SwiGLU) has three matrices, a plain MLP has two.
enum class mlp_kind { gated, plain };

/// Multi-head latent attention (DeepSeek-V2). If `key_value_rank` is 0, the attention is not
/// latent. Otherwise `head_size` is the size of the part of keys without position, and there is one
/// key head for each head.
struct latent_attention {
  std::int64_t key_value_rank = 0;
  /// The rank of queries; 0 means that queries are projected directly.
  std::int64_t query_rank = 0;
  /// The size of the part of a query or key with position; all heads share this part of the keys.
  std::int64_t rope_size = 0;
  /// The size of a value; 0 means `head_size`.
  std::int64_t value_size = 0;

  [[nodiscard]] friend bool operator==(latent_attention const&, latent_attention const&) = default;
};

/// The indexer of a sparse attention (DeepSeek-V3.2). The indexer scores all earlier tokens with a
/// few small heads, and attention reads only the tokens with the largest scores;
/// `transformer::span` is a window with their number. If `heads` is 0, the layer has no indexer,
/// for example because it uses the selection of an earlier layer.
///
/// With S and W the sums of squares within the document and within the window, the scores are S *
/// heads * head_size FLOPs forward and 2W * heads * head_size backward. The inputs get no
/// gradients, so the backward FLOPs of the projections equal the forward FLOPs. A layer that is not
/// trained has no backward pass of the indexer. The targets of the loss of the indexer are not
/// counted. Source: DeepSeek-AI, "DeepSeek-V3.2", 2025 (arXiv 2512.02556).
struct sparse_indexer {
  std::int64_t heads = 0;
  std::int64_t head_size = 0;

  [[nodiscard]] friend bool operator==(sparse_indexer const&, sparse_indexer const&) = default;
};

/// The matrices of a layer that have low-rank adapters.
enum class adapter_targets { all, attention, feed_forward };

/// Low-rank adapters (LoRA) of the matrices of a layer whose `training` is `input_gradients`. If
/// `rank` is 0, there are none. An adapter has rank * (inputs + outputs) trained parameters and
/// keeps the input of its matrix. Queries, keys, values, a gate, and the two input matrices of a
/// gated MLP have separate adapters. Routers, indexers and recurrent parts have no adapters.
struct low_rank_adapters {
  std::int64_t rank = 0;
  adapter_targets targets = adapter_targets::all;

  [[nodiscard]] friend bool operator==(low_rank_adapters const&,
                                       low_rank_adapters const&) = default;
};

/// A mixture of experts. If `routed` is 0, there are no experts. The layer also has its dense part
/// if `transformer::mlp` is not 0.
struct expert_layer {
  std::int64_t routed = 0;
  /// The number of routed experts that process a token.
  std::int64_t active = 0;
  /// The number of experts that process every token.
  std::int64_t shared = 0;
  /// The width of one expert.
  std::int64_t mlp = 0;
  /// True if a gate with one number for each token scales the output of the shared experts
  /// (Qwen1.5-MoE).
  bool shared_gate = false;
  /// The width of one shared expert; 0 means `mlp`.
  std::int64_t shared_mlp = 0;
  /// The width between the layer and its routed experts; 0 means that experts have the width of the
  /// layer. Otherwise one matrix before and one after the experts change the width (Nemotron 3).
  std::int64_t latent_width = 0;
  /// True if routed experts and the router have biases (gpt-oss).
  bool has_bias = false;
  /// The number of parameters of routed experts that the counted tokens never use, such as the
  /// image experts of ERNIE 4.5 VL. The ranks of `parallel_degrees::expert` share them.
  std::int64_t idle_parameters = 0;

  [[nodiscard]] friend bool operator==(expert_layer const&, expert_layer const&) = default;
};

/// The position of a cross-attention in its layer.
enum class cross_placement {
  after_self,    ///< both attentions, as in encoder-decoder models
  instead_self,  ///< only the cross-attention, as in every fifth layer of Llama 3.2 Vision
};

/// Cross-attention from the documents to `micro_batch_work::context`. If `context_width` is 0,
/// there is none.
struct cross_attention {
  std::int64_t context_width = 0;
  cross_placement placement = cross_placement::after_self;

  [[nodiscard]] friend bool operator==(cross_attention const&, cross_attention const&) = default;
};

/// The distribution of the activations between the tensor-parallel products: the inputs and outputs
/// of norms, and the residual sums.
enum class norm_regions {
  replicated,  ///< all of them on every tensor-parallel rank
  split,       ///< shared by these ranks (sequence parallelism of Korthikanti et al.)
};

/// The state that is sharded over data-parallel ranks. Each choice includes the previous choices.
/// If gradients or parameters are sharded, a rank still needs memory for the whole gradients or
/// parameters of the layer that runs; `recompute_cost::transient_bytes` includes this memory.
enum class sharded_state { nothing, optimizer, gradients, parameters };

/// The numbers of ranks that work on one layer. A `layer_cost` has the cost of one of these ranks.
/// If the costs of ranks differ, it has the largest one.
struct parallel_degrees {
  /// The number of ranks that share the matrices. It must divide the heads and the widths of the
  /// hidden layers. If it exceeds the number of key-value heads, it must be a multiple of this
  /// number, and ranks have copies of these heads.
  std::int64_t tensor = 1;
  /// The number of ranks that share the tokens of every sequence (context parallelism, ring
  /// attention, Ulysses).
  std::int64_t sequence = 1;
  /// The number of ranks that have their own micro-batches. The state is sharded over these ranks
  /// and the ranks of `sequence`.
  std::int64_t data = 1;
  /// The number of ranks that share the routed experts. They are some of the ranks of `data` and
  /// `sequence`, so the number must divide the product of these two. All experts are assumed to
  /// receive the same number of tokens.
  std::int64_t expert = 1;
  norm_regions norms = norm_regions::replicated;
  sharded_state sharding = sharded_state::optimizer;
  /// The number of stages of the pipeline. With more than one stage, a tied head has its own copy
  /// of the matrix (`head_weights::tied`); other layers ignore the number.
  std::int64_t pipeline = 1;
  /// The number of ranks that share the matrices of one routed expert; 0 means `tensor`. If the
  /// number is less than `tensor` (1 in Megatron's folding), the ranks of `expert` also include
  /// ranks of `tensor`, and `expert` * `expert_tensor` must divide `tensor` * `data` * `sequence`.
  std::int64_t expert_tensor = 0;
};

/// The bytes of one number of activations, parameters, gradients and optimizer state. The default
/// is training in bf16 with fp32 gradients and the three fp32 numbers of Adam.
struct byte_sizes {
  std::int64_t activation = 2;
  std::int64_t parameter = 2;
  std::int64_t gradient = 4;
  std::int64_t optimizer = 12;
  /// The bytes of a number of a kept input of a matrix; 0 means `activation`. With 1, these inputs
  /// are kept in FP8; all other activations (queries, keys, values, inputs of norms and
  /// activations) keep their type.
  std::int64_t matrix_input = 0;
  /// The additional bytes of each parameter of a matrix within a layer, such as FP8 copies.
  /// Embeddings, heads, routers and norms have no copies.
  std::int64_t matrix_copy = 0;
  /// The number of numbers of a kept input of a matrix that share a scale of one byte (32 in
  /// MXFP8); 0 means that scales are not counted.
  std::int64_t scale_block = 0;
};

/// FP8 with one scale for each tensor: kept inputs of matrices in FP8, parameters in bf16, and two
/// FP8 copies of each matrix, one of them transposed.
inline constexpr byte_sizes fp8_bytes{.matrix_input = 1, .matrix_copy = 2};

/// MXFP8: like `fp8_bytes`, with a scale of one byte for 32 numbers of an input. The scales of the
/// copies, 1/16 byte for each parameter, are not counted.
inline constexpr byte_sizes mxfp8_bytes{.matrix_input = 1, .matrix_copy = 2, .scale_block = 32};

/// The part of a layer that is trained.
enum class training_mode {
  all,
  /// Nothing is trained, but gradients pass through the layer to trained layers before it.
  input_gradients,
  /// Nothing is trained, and no gradients pass: there is no backward pass and nothing is kept.
  forward_only,
};

/// Floating-point operations of matrix products, and the bytes that all other operations read and
/// write. Each of these operations (norm, activation, residual sum, unfused softmax and dropout) is
/// assumed to be a separate kernel.
struct layer_work {
  std::int64_t flops = 0;
  std::int64_t moved_bytes = 0;

  [[nodiscard]] friend bool operator==(layer_work const&, layer_work const&) = default;
};

/// The activations that a layer keeps for its backward pass.
enum class recompute_choice {
  none,       ///< everything
  selective,  ///< everything except the activations that are cheapest to recompute
  full,       ///< the input of the layer
};

/// The memory and the work of one recomputation choice.
struct recompute_cost {
  /// The bytes that are kept from the forward pass of a micro-batch to its backward pass.
  std::int64_t kept_bytes = 0;
  /// The additional bytes while the layer runs: recomputed activations, the gradients of its widest
  /// operation, and the parameters and gradients that are whole only during this time
  /// (`sharded_state`).
  std::int64_t transient_bytes = 0;
  /// The work of the recomputation.
  layer_work extra{};

  [[nodiscard]] friend bool operator==(recompute_cost const&, recompute_cost const&) = default;
};

/// The cost of a layer on one rank for one micro-batch.
struct layer_cost {
  layer_work forward{};
  layer_work backward{};
  /// The number of parameters on this rank, before they are sharded over data-parallel ranks.
  std::int64_t parameters = 0;
  /// The number of all parameters except the parameters of routed experts that a token does not
  /// use.
  std::int64_t active_parameters = 0;
  std::int64_t parameter_bytes = 0;
  std::int64_t gradient_bytes = 0;
  std::int64_t optimizer_bytes = 0;
  /// The memory and work of each choice, in the order of `recompute_choice`.
  std::array<recompute_cost, 3> choices{};
  /// The bytes that are sent to the next stage if the model is cut after this layer.
  std::int64_t cut_bytes = 0;

  [[nodiscard]] constexpr recompute_cost const& operator[](recompute_choice choice) const {
    return choices[static_cast<std::size_t>(choice)];
  }
  /// Returns the forward and backward FLOPs, without recomputation.
  [[nodiscard]] constexpr std::int64_t flops() const { return forward.flops + backward.flops; }
  /// Returns the bytes of parameters, gradients and optimizer state. They do not depend on the
  /// number of micro-batches in flight.
  [[nodiscard]] constexpr std::int64_t state_bytes() const {
    return parameter_bytes + gradient_bytes + optimizer_bytes;
  }

  [[nodiscard]] friend bool operator==(layer_cost const&, layer_cost const&) = default;
};

/// A functor from the work of a micro-batch, the parallel degrees and the byte sizes to the cost of
/// one layer.
template <class Layer>
concept layer_model = std::regular_invocable<Layer const&, micro_batch_work const&,
                                             parallel_degrees const&, byte_sizes const&> &&
    std::same_as<std::invoke_result_t<Layer const&, micro_batch_work const&,
                                      parallel_degrees const&, byte_sizes const&>,
                 layer_cost>;

}  // namespace omnibal::inline v0
