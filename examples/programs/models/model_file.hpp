// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Models by name or from a file: a description of towers and layers, or the public configuration
/// of a model as it is published. docs/reference/models.md describes both.

#include "carried_features.hpp"
#include "published_total.hpp"
#include "query_layers.hpp"

#include <omnibal/cost/models.hpp>

#include <concepts>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace examples {

/// A number of equal connectors.
struct connector_run {
  std::int64_t count = 1;
  omnibal::projector layer{};
  /// For each of these connectors the layer of the tower, from 0, whose output it merges
  /// (DeepStack). The language model adds the output of its mergers behind its first layers, one
  /// behind each. Empty if the connectors follow the tower and one another.
  std::vector<std::int64_t> inner_layers{};
};

/// A vision tower, and what makes tokens of the language model of its patches.
struct vision_part {
  omnibal::mixed_vision_model tower{};
  /// The last connector, which leads to the language model.
  omnibal::projector connector{};
  std::optional<query_tower> resampler{};
  /// Connectors before the last one: mergers of the outputs of layers within the tower, and then
  /// the first steps of the last one. All of them run behind the tower here.
  std::vector<connector_run> further{};
  /// Numbers that the class has and that never run in the model: pooling, layers behind the one
  /// whose output is taken. No layer counts them.
  std::int64_t idle_parameters = 0;

  template <class Visit>
  void for_each_layer(Visit&& visit) const {
    tower.for_each_layer(visit);
    for (connector_run const& run : further) visit(run.layer, run.count);
    if (resampler) resampler->for_each_layer(tower.layer(), visit);
    visit(connector, std::int64_t{1});
  }
};

/// An audio tower, and the connectors that make tokens of the language model of its tokens. There
/// are none if the language model attends to the tokens (Whisper).
struct audio_part {
  omnibal::audio_model tower{};
  std::vector<connector_run> connectors{};
  /// As `vision_part::idle_parameters`.
  std::int64_t idle_parameters = 0;
  /// Runs before the last connector.
  std::optional<window_tower> resampler{};

  /// The tokens that a clip of so many tokens of the tower becomes. Without connectors none stand in
  /// a document.
  [[nodiscard]] std::int64_t document_tokens(std::int64_t clip_tokens) const {
    if (connectors.empty()) return 0;
    for (connector_run const& run : connectors) {
      std::int64_t const merged = run.layer.patches_per_token;
      for (std::int64_t i = 0; i != run.count && merged != 1; ++i) {
        clip_tokens = clip_tokens / merged + (clip_tokens % merged == 0 ? 0 : 1);
      }
    }
    return clip_tokens;
  }

  template <class Visit>
  void for_each_layer(Visit&& visit) const {
    tower.for_each_layer(visit);
    for (connector_run const& run : connectors) {
      if (resampler && &run == &connectors.back()) resampler->for_each_layer(visit);
      visit(run.layer, run.count);
    }
  }
};

/// A part of a file that is not read.
struct omitted_part {
  std::string name;
  /// 0 if they are not counted.
  std::int64_t parameters = 0;
};

/// A model in the order in which a pipeline has its layers. It has at least one of the parts; a
/// tower by itself has a connector without an output.
struct model_description {
  /// For tables and the names of files.
  std::string name;
  std::optional<vision_part> vision;
  std::optional<omnibal::mixed_language_model> language;
  /// Where the tokens of tiles do not stand in the documents, but are attended to.
  std::optional<cross_layers> cross;
  /// Runs between the vision part and the language model.
  std::optional<audio_part> audio;
  /// What the file has besides; no layer counts it.
  std::vector<omitted_part> omitted;
  std::optional<published_total> published;

  model_description() = default;
  model_description(omnibal::vision_language_model const& model)
      : vision(vision_part{model.vision, model.connector}), language(model.language) {}
  model_description(std::string its_name, omnibal::vision_language_model const& model)
      : model_description(model) {
    name = std::move(its_name);
  }

  /// The model without its layers of multi-token prediction. Published totals leave these out.
  [[nodiscard]] model_description without_prediction() const {
    model_description result = *this;
    if (result.language) result.language->prediction_layers = 0;
    return result;
  }

  /// True if tokens of tiles stand in no document: layers of the language model attend to them.
  [[nodiscard]] bool is_seen_by_layers() const {
    return cross || (language && !audio && has_cross_attention(*language));
  }

  /// Tokens that a tile adds to its document. Precondition: the model has both parts.
  [[nodiscard]] std::int64_t document_tokens_of_tile() const {
    return is_seen_by_layers() ? 0 : vision->connector.tile_tokens;
  }

  /// The most tiles whose tokens fit into documents of so many tokens.
  [[nodiscard]] std::int64_t max_tiles(std::int64_t document_tokens) const {
    std::int64_t const of_tile = vision && language ? document_tokens_of_tile() : 0;
    if (of_tile == 0) return std::numeric_limits<std::int64_t>::max();
    return document_tokens / of_tile;
  }

  /// Visits all layers. A layer is `passing` if a cut behind it also sends what later layers read.
  template <class Visit>
  void for_each_layer(Visit&& visit) const {
    visit_carrying(
        carried_features(*this), [&model = *this](auto&& each) { model.for_each_part(each); },
        visit);
  }

  /// Visits the layers of all parts, each as its part has it.
  template <class Visit>
  void for_each_part(Visit&& visit) const {
    if (vision) vision->for_each_layer(visit);
    if (audio) audio->for_each_layer(visit);
    if (language) language_layers().for_each_layer(visit);
  }

  /// The language model with its layers of cross-attention.
  struct language_stack {
    model_description const& model;

    template <class Visit>
    void for_each_layer(Visit&& visit) const {
      if (model.cross) {
        model.cross->for_each_layer(*model.language, model.vision->connector.tile_tokens, visit);
      } else if (model.audio) {
        model.language->for_each_layer(
            [&](auto const& layer, std::int64_t count) { visit_with_clips(layer, count, visit); });
      } else if (model.vision && has_cross_attention(*model.language)) {
        visit_with_tiles(*model.language, model.vision->connector.tile_tokens,
                         model.vision->tower.layer().tiles_of_image, visit);
      } else {
        model.language->for_each_layer(visit);
      }
    }

   private:
    /// Gives a layer with cross-attention of its own the tokens of clips.
    template <class Layer, class Visit>
    void visit_with_clips(Layer const& layer, std::int64_t count, Visit&& visit) const {
      if constexpr (std::same_as<Layer, omnibal::transformer>) {
        if (layer.cross.context_width != 0) return visit(heard_layer{layer}, count);
      }
      visit(layer, count);
    }
  };
  /// Precondition: there is a language model, and a tower where it has cross-attention.
  [[nodiscard]] language_stack language_layers() const { return {*this}; }
};

/// What a program needs of a model; others are refused with what is missing.
enum class model_parts { vision, language, both, any };

/// The models that have a name, of any parts.
[[nodiscard]] std::vector<model_description> const& known_models();

/// A known model by its name; a file; or `TOWER+LANGUAGE`, each a name or a file, which takes the
/// tower of the first and the language model of the second.
///
/// A name is that of a file where it ends with `.json` or has a slash. `family` says by whose rules
/// public configurations are read; empty: their own. Errors: `input_error` that names the file, the
/// field and the value, or the nearest known name.
[[nodiscard]] model_description find_model(std::string const& given, model_parts needed,
                                           std::string_view family = {});

/// The model with the heads of its vision tower padded so that the tensor-parallel ranks divide
/// them.
[[nodiscard]] model_description padded(model_description model, std::int64_t tensor_ranks);

/// Leads the connectors of a model to its language model.
void lead_connectors(model_description& model);

/// A model as a file describes it, and back. Errors of `model_of`: `input_error`; `file` is for
/// them, `field` is where the model stands in it.
[[nodiscard]] nlohmann::ordered_json model_json(model_description const& model);
[[nodiscard]] model_description model_of(std::string const& file, std::string const& field,
                                         nlohmann::json const& value, std::string_view family = {});

}  // namespace examples
