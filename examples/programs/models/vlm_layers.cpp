// SPDX-License-Identifier: Apache-2.0
#include "vlm_layers.hpp"

#include <omnibal/cost/audio_stem.hpp>
#include <omnibal/cost/audio_transformer.hpp>
#include <omnibal/cost/device_model.hpp>
#include <omnibal/cost/embedding.hpp>
#include <omnibal/cost/prediction_layer.hpp>
#include <omnibal/cost/projector.hpp>
#include <omnibal/cost/transformer.hpp>
#include <omnibal/cost/vision_transformer.hpp>

#include <algorithm>
#include <cstddef>

namespace examples {

namespace {

constexpr std::string_view kind_of(omnibal::patch_embedding const&) { return "patch embedding"; }
constexpr std::string_view kind_of(omnibal::vision_transformer const&) { return tower_kinds[0]; }
constexpr std::string_view kind_of(omnibal::tower_norm const&) { return "tower norm"; }
constexpr std::string_view kind_of(omnibal::projector const& layer) {
  return layer.source == omnibal::projector_source::clips ? "audio projector" : "projector";
}
constexpr std::string_view kind_of(omnibal::audio_stem const&) { return "audio stem"; }
constexpr std::string_view kind_of(omnibal::audio_transformer const&) { return "audio layer"; }
constexpr std::string_view kind_of(omnibal::audio_norm const&) { return "audio norm"; }
constexpr std::string_view kind_of(omnibal::embedding const&) { return "embedding"; }
constexpr std::string_view kind_of(omnibal::transformer const&) { return tower_kinds[1]; }
constexpr std::string_view kind_of(omnibal::language_head const&) { return "head"; }
constexpr std::string_view kind_of(omnibal::prediction_layer const&) { return "prediction layer"; }
constexpr std::string_view kind_of(query_layer const&) { return "resampler layer"; }
constexpr std::string_view kind_of(window_layer const&) { return "resampler layer"; }
constexpr std::string_view kind_of(heard_layer const&) { return tower_kinds[1]; }
constexpr std::string_view kind_of(cross_layer const&) { return "cross-attention layer"; }
template <class Layer>
constexpr std::string_view kind_of(passing<Layer> const& passes) {
  return kind_of(passes.layer);
}

/// What model_layers recomputes: all but what stands alone.
constexpr bool is_one_of_many(std::string_view kind) { return kind.ends_with(" layer"); }

}  // namespace

std::vector<std::string_view> layer_kinds(model_description const& model) {
  std::vector<std::string_view> result;
  model.for_each_layer([&](auto const& layer, std::int64_t count) {
    result.insert(result.end(), static_cast<std::size_t>(count), kind_of(layer));
  });
  return result;
}

std::size_t first_language_layer(std::span<std::string_view const> kinds) {
  return static_cast<std::size_t>(std::ranges::find(kinds, "embedding") - kinds.begin());
}

omnibal::recompute_choice choice_of(std::string_view kind, omnibal::recompute_choice recomputed) {
  return is_one_of_many(kind) ? recomputed : omnibal::recompute_choice::none;
}

std::vector<vlm_layer> model_layers(model_description const& model,
                                    training_setting const& setting) {
  std::vector<vlm_layer> result;
  padded(model, setting.degrees.tensor).for_each_layer([&](auto const& layer, std::int64_t count) {
    omnibal::layer_cost const cost = layer(setting.batch, setting.degrees);
    std::string_view const kind = kind_of(layer);
    auto const choice = choice_of(kind, setting.recomputed);
    vlm_layer const made{.kind = kind,
                         .parameters = cost.parameters,
                         .nanoseconds = omnibal::layer_time{setting.device, choice}(cost),
                         .state_bytes = cost.state_bytes(),
                         .kept_bytes = cost[choice].kept_bytes,
                         .transient_bytes = cost[choice].transient_bytes,
                         .cut_bytes = cost.cut_bytes};
    result.insert(result.end(), static_cast<std::size_t>(count), made);
  });
  return result;
}

std::string kinds_of(std::span<vlm_layer const> layers) {
  std::string result;
  for (std::size_t first = 0; first != layers.size();) {
    std::size_t last = first;
    while (last + 1 != layers.size() && layers[last + 1].kind == layers[first].kind) ++last;
    if (first != 0) result += ", ";
    result += std::to_string(first);
    if (last != first) result.append("-").append(std::to_string(last));
    result.append(" ").append(layers[first].kind);
    first = last + 1;
  }
  return result;
}

}  // namespace examples
