// SPDX-License-Identifier: Apache-2.0
#include "model_report.hpp"

#include "vlm_layers.hpp"

#include <omnibal/cost/layer_cost.hpp>
#include <omnibal/cost/layered_model.hpp>

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdlib>
#include <utility>
#include <vector>

namespace examples {

namespace {

constexpr std::int64_t short_document = 4096;
constexpr std::int64_t long_document = 131072;

std::string count_text(std::int64_t value) { return counted(static_cast<std::uint64_t>(value)); }

std::string span_text(omnibal::attention_span const& span) {
  switch (span.kind) {
    case omnibal::span_kind::whole: return "";
    case omnibal::span_kind::window: return ", window " + count_text(span.tokens);
    case omnibal::span_kind::chunk: return ", chunk " + count_text(span.tokens);
  }
  return "";
}

std::string mixer_of(omnibal::transformer const& layer) {
  std::string result;
  auto const add = [&result](std::string const& name) {
    result += (result.empty() ? "" : " and ") + name;
  };
  bool const is_cross = layer.cross.context_width != 0 &&
                        layer.cross.placement == omnibal::cross_placement::instead_self;
  if (layer.heads != 0 && !is_cross) {
    add(layer.latent.key_value_rank != 0 ? "latent attention" : "attention");
    result += span_text(layer.span);
    if (layer.indexer.heads != 0) result += ", indexer";
  }
  if (layer.cross.context_width != 0) add("cross-attention");
  if (layer.delta.key_heads != 0) add("linear attention");
  if (layer.space.heads != 0) add("state space");
  if (layer.convolution.tokens != 0) add("short convolution");
  return result;
}

std::string feed_forward_of(omnibal::transformer const& layer) {
  std::string result;
  if (layer.mlp != 0) result = "MLP " + count_text(layer.mlp);
  if (layer.experts.routed == 0) return result;
  result += (result.empty() ? "" : " and ") + count_text(layer.experts.active) + " of " +
            count_text(layer.experts.routed) + " experts";
  if (layer.experts.shared != 0) result += " + " + count_text(layer.experts.shared) + " shared";
  return result;
}

/// The parts of the language layer that a layer is or wraps.
template <class Layer>
std::string parts_within(Layer const& layer) {
  if constexpr (std::same_as<Layer, omnibal::transformer>) {
    return parts_of(layer);
  } else if constexpr (requires { layer.layer; }) {
    return parts_within(layer.layer);
  } else {
    return "";
  }
}

/// The tokens of 30 seconds in the towers of Whisper.
constexpr std::int64_t clip_tokens = 1500;

/// A micro-batch of one document, and of a tile and a clip if the model has towers for them.
omnibal::micro_batch_work one_document(model_description const& model, std::int64_t length) {
  bool const has_tiles = model.vision && model.vision->tower.layer().image_size != 0;
  return {.tiles = has_tiles ? 1 : 0,
          .clips = omnibal::equal_sequences({.count = model.audio ? 1 : 0, .length = clip_tokens}),
          .documents = omnibal::equal_sequences({.count = 1, .length = length})};
}

/// A model as it is described: a tower by itself has no connector, because it leads nowhere.
struct described_model {
  model_description const& model;

  template <class Visit>
  void for_each_layer(Visit&& visit) const {
    bool const is_lone = model.vision && model.vision->connector.output == 0;
    if (is_lone) {
      model.vision->tower.for_each_layer(visit);
    } else {
      model.for_each_layer(visit);
    }
  }
};

/// Equal layers, wherever they are.
struct layer_row {
  std::size_t first = 0;
  std::int64_t count = 0;
  std::string kind;
  std::string parts;
  omnibal::layer_cost cost;
};

std::string per_token(std::int64_t amount, std::int64_t length, double unit, int digits) {
  return fixed(static_cast<double>(amount) / static_cast<double>(length) / unit, digits);
}

/// Training GFLOPs of a token of the language model.
std::string flops_of_token(omnibal::mixed_language_model const& language, std::int64_t length) {
  return per_token(omnibal::document_cost(language)(length), length, 1e9, 2);
}

std::int64_t kept_bytes(omnibal::mixed_language_model const& language, std::int64_t length) {
  std::int64_t sum = 0;
  omnibal::micro_batch_work const batch{
      .documents = omnibal::equal_sequences({.count = 1, .length = length})};
  for (auto const& layer : omnibal::layer_costs(language, batch)) {
    sum += layer[omnibal::recompute_choice::none].kept_bytes;
  }
  return sum;
}

/// Parameters that the class of a model has and no layer.
struct uncounted_parameters {
  std::int64_t idle = 0;
  std::int64_t omitted = 0;
};

uncounted_parameters uncounted(model_description const& model) {
  uncounted_parameters result;
  if (model.vision) result.idle += model.vision->idle_parameters;
  if (model.audio) result.idle += model.audio->idle_parameters;
  for (omitted_part const& part : model.omitted) result.omitted += part.parameters;
  return result;
}

/// Adds the published total and how far the layers are from it.
void add_published(std::vector<std::string>& row, model_description const& model,
                   std::int64_t counted_here) {
  if (!model.published || model.published->parameters == 0) {
    row.insert(row.end(), 2, "-");
    return;
  }
  std::int64_t const published = model.published->parameters;
  auto const [idle, omitted] = uncounted(model);
  std::string text;
  if (counted_here == published) {
    text = "equal";
  } else if (counted_here + idle + omitted == published) {
    text = "equal with " + count_text(idle + omitted) +
           (omitted == 0 ? " that never run" : " that are not read");
  } else {
    std::int64_t const missing = published - counted_here;
    text = count_text(std::abs(missing)) + (missing > 0 ? " fewer" : " more");
  }
  row.push_back(count_text(published));
  row.push_back(std::move(text));
}

}  // namespace

std::string parts_of(omnibal::transformer const& layer) {
  std::string const mixer = mixer_of(layer);
  std::string const feed_forward = feed_forward_of(layer);
  return mixer + (mixer.empty() || feed_forward.empty() ? "" : "; ") + feed_forward;
}

std::string published_text(model_description const& model) {
  if (!model.published) return {};
  auto const& published = *model.published;
  if (published.parameters == 0) {
    return "Published: " + count_text(published.bytes) + " bytes (" + published.source + ")\n";
  }
  std::int64_t const idle = uncounted(model).idle;
  auto const trained = model.without_prediction();
  std::int64_t const all = omnibal::count_parameters(described_model{model}).total;
  std::int64_t const without = omnibal::count_parameters(described_model{trained}).total;
  struct sum {
    std::int64_t parameters;
    std::string what;
  };
  std::string const prediction = without == all ? "" : " without multi-token prediction";
  std::string const never = " with " + count_text(idle) + " that never run";
  std::array<sum, 4> const sums{{{all, ""},
                                 {without, prediction},
                                 {all + idle, never},
                                 {without + idle, prediction + (idle == 0 ? "" : never)}}};
  auto const distance = [&](sum const& one) {
    return std::abs(one.parameters - published.parameters);
  };
  sum const nearest = *std::ranges::min_element(sums, {}, distance);
  std::string result = "Published: " + count_text(published.parameters) + " (" + published.source +
                       "). The layers" + nearest.what + " have " + count_text(nearest.parameters);
  std::int64_t const difference = nearest.parameters - published.parameters;
  if (difference == 0) return result + ", the same number\n";
  double const share =
      static_cast<double>(distance(nearest)) / static_cast<double>(published.parameters);
  return result + ", " + count_text(distance(nearest)) + (difference < 0 ? " fewer" : " more") +
         " (" + percent(share, 4) + ")\n";
}

void print_layers(std::ostream& out, model_description const& model, std::int64_t length) {
  auto const kinds = layer_kinds(model);
  auto const batch = one_document(model, length);
  std::vector<layer_row> rows;
  std::size_t first = 0;
  described_model{model}.for_each_layer([&](auto const& layer, std::int64_t count) {
    layer_row made{first, count, std::string(kinds[first]), parts_within(layer),
                   layer(batch, {}, {})};
    // Cuts are no part of a layer: equal layers may carry different features of others.
    made.cost.cut_bytes = 0;
    first += static_cast<std::size_t>(count);
    auto const known = std::ranges::find_if(rows, [&](layer_row const& row) {
      return row.kind == made.kind && row.parts == made.parts && row.cost == made.cost;
    });
    if (known == rows.end()) {
      rows.push_back(std::move(made));
    } else {
      known->count += count;
    }
  });
  table shown({"first", "count", "kind", "parts", "parameters", "MFLOPs", "kept bytes"});
  for (layer_row const& row : rows) {
    std::int64_t const kept = row.cost[omnibal::recompute_choice::none].kept_bytes;
    shown.add({std::to_string(row.first), count_text(row.count), row.kind, row.parts,
               count_text(row.cost.parameters), per_token(row.cost.flops(), length, 1e6, 1),
               count_text(kept / length)});
  }
  shown.print(out);
  auto const all = omnibal::count_parameters(described_model{model});
  out << "Parameters: " << count_text(all.total);
  if (all.active != all.total) out << ", active " << count_text(all.active);
  auto const trained = model.without_prediction();
  auto const without = omnibal::count_parameters(described_model{trained});
  if (without != all) out << "; without multi-token prediction " << count_text(without.total);
  out << '\n'
      << published_text(model)
      << "Parameters of one layer. MFLOPs (forward and backward) and kept bytes are for one\n"
         "layer and one token of a document of "
      << count_text(length) << " tokens";
  if (batch.tiles != 0) out << " with one tile";
  if (batch.clips.count != 0) {
    out << (batch.tiles != 0 ? " and" : " with") << " a clip of " << count_text(clip_tokens)
        << " tokens of the audio tower";
  }
  out << ".\n";
}

table models_table(std::span<model_description const> models) {
  table rows({"model", "parameters", "active", "language model", "GFLOPs 4K", "GFLOPs 131K",
              "kept bytes", "published", "difference"});
  for (model_description const& model : models) {
    auto const counted_model = model.without_prediction();
    auto const all = omnibal::count_parameters(described_model{counted_model});
    std::vector<std::string> row{model.name, count_text(all.total), count_text(all.active)};
    if (counted_model.language) {
      auto const& language = *counted_model.language;
      row.push_back(count_text(omnibal::count_parameters(language).total));
      row.push_back(flops_of_token(language, short_document));
      row.push_back(flops_of_token(language, long_document));
      row.push_back(count_text(kept_bytes(language, short_document) / short_document));
    } else {
      row.insert(row.end(), 4, "");
    }
    add_published(row, model, all.total);
    rows.add(std::move(row));
  }
  return rows;
}

}  // namespace examples
