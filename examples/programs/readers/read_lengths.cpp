// SPDX-License-Identifier: Apache-2.0
#include "read_lengths.hpp"

#include "data_folder.hpp"
#include "foreign_files.hpp"
#include "input_error.hpp"
#include "readers.hpp"

#include <algorithm>
#include <optional>
#include <string_view>
#include <system_error>

namespace examples {

namespace {

constexpr std::string_view blank = " \t\r\n";

/// The first letter of the value of the first field of the object that `text` begins with; a
/// closing brace where there is none.
char first_value(std::string_view text) {
  std::size_t i = text.find_first_not_of(blank, 1);
  if (i == std::string_view::npos) return '\0';
  if (text[i] != '"') return text[i];
  for (++i; i < text.size() && text[i] != '"'; ++i) {
    if (text[i] == '\\') ++i;
  }
  i = text.find_first_not_of(blank, i + 1);
  if (i == std::string_view::npos || text[i] != ':') return '\0';
  i = text.find_first_not_of(blank, i + 1);
  return i == std::string_view::npos ? '\0' : text[i];
}

/// What an object is: a manifest, columns, or the first record of JSON lines. Another value behind
/// it makes it a record.
input_format detected_object(std::string_view body) {
  char const first = first_value(body);
  if (first != '{' && first != '}' && first != '[') return input_format::jsonl;
  std::size_t const end = end_of_json(body);
  bool const is_whole = end == body.npos || body.find_first_not_of(blank, end) == body.npos;
  if (!is_whole) return input_format::jsonl;
  return first == '[' ? input_format::columns : input_format::manifest;
}

/// The extension of a file, of what gzip or zstd has compressed if they did, in lower case.
std::string extension_of(std::filesystem::path name) {
  auto const lower = [&] {
    std::string result = name.extension().string();
    for (char& c : result) {
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    }
    return result;
  };
  std::string const last = lower();
  if (last != ".gz" && last != ".gzip" && last != ".zst") return last;
  name.replace_extension();
  return lower();
}

std::string in_quotation_marks(std::string const& name) { return '"' + name + '"'; }

/// A format that the first bytes of a file determine, and the name of such a file in messages.
struct told_format {
  input_format format = input_format::detect;
  std::string_view name{};
};

/// Returns true if a text begins with an object that has a list of objects, and if the first of
/// these objects has a field.
bool is_index(std::string_view bytes, std::string_view list, std::string_view field) {
  std::size_t const first = bytes.find_first_not_of(blank);
  if (first == bytes.npos || bytes[first] != '{') return false;
  constexpr std::size_t looked_at = 1 << 16;
  bytes = bytes.substr(first, looked_at);
  std::size_t next = bytes.find(list);
  if (next == bytes.npos) return false;
  next += list.size();
  for (char const mark : {':', '[', '{'}) {
    next = bytes.find_first_not_of(blank, next);
    if (next == bytes.npos || bytes[next++] != mark) return false;
  }
  return bytes.find(field, next) != bytes.npos;
}

/// Returns true for a Parquet file, and false for the header of a table whose first name begins
/// with PAR1.
bool is_parquet(std::string_view bytes) {
  constexpr std::string_view controls = "\r\n\t";
  if (!bytes.starts_with("PAR1")) return false;
  return bytes.size() == 4 ||
         (static_cast<unsigned char>(bytes[4]) < ' ' && controls.find(bytes[4]) == controls.npos);
}

/// The format that the first bytes of a file tell, or `detect`.
told_format told_by(std::string_view bytes) {
  if (bytes.starts_with("\x93NUMPY")) return {input_format::npy, "a NumPy array"};
  if (bytes.starts_with(std::string_view("MMIDIDX\0\0", 9))) {
    return {input_format::megatron, "an index of Megatron"};
  }
  if (bytes.size() >= 262 && bytes.substr(257).starts_with("ustar")) {
    return {input_format::tar, "a tar archive"};
  }
  if (is_parquet(bytes)) return {input_format::arrow, "a Parquet file"};
  if (bytes.starts_with(std::string_view("ARROW1\0\0", 8))) {
    return {input_format::arrow, "an Arrow (Feather) file"};
  }
  if (bytes.starts_with("\xFF\xFF\xFF\xFF")) return {input_format::arrow, "an Arrow stream"};
  if (is_index(bytes, "\"shards\"", "\"column_encodings\"")) {
    return {input_format::mds, "an index of MosaicML (MDS)"};
  }
  if (is_index(bytes, "\"chunks\"", "\"chunk_bytes\"")) {
    return {input_format::litdata, "an index of litData"};
  }
  return {};
}

/// Fails for files of other programs, and for those with first bytes that another format has.
void refuse_foreign(file_text const& text, input_format format) {
  told_format const told = told_by(text.view());
  if (told.format != input_format::detect && format != input_format::detect &&
      format != told.format) {
    fail({text.name()}, "is " + std::string(told.name) + "; --format names another format");
  }
  std::string_view const kind = foreign_kind(text.view());
  if (kind.empty()) return;
  fail({text.name()}, "is " + std::string(kind) +
                          ", which is not read; docs/reference/files.md shows how to convert it");
}

/// Fails for bytes that are no text.
void refuse_binary(file_text const& text) {
  if (text.view().find('\0') == std::string_view::npos) return;
  fail({text.name()},
       "holds a zero byte, so it is no text, and begins as no format that is read; "
       "docs/reference/files.md lists these, and shows how to convert raw numbers");
}

input_format detected(file_text const& text) {
  told_format const told = told_by(text.view());
  if (told.format != input_format::detect) return told.format;
  refuse_binary(text);
  std::string const extension = extension_of(text.name());
  if (extension == ".jsonl" || extension == ".ndjson") return input_format::jsonl;
  if (extension == ".csv" || extension == ".tsv") return input_format::csv;
  std::size_t const first = text.view().find_first_not_of(blank);
  if (first == std::string_view::npos) fail({text.name()}, "the file is empty");
  std::string_view const body = text.view().substr(first);
  if (body.front() == '[') return input_format::json;
  if (body.front() == '{') return detected_object(body);
  if (extension == ".json") return input_format::json;
  std::string_view const line = body.substr(0, body.find_first_of("\r\n"));
  bool const is_number = line.find_first_not_of("0123456789 \t") == line.npos;
  return is_number ? input_format::numbers : input_format::csv;
}

void read_rows(file_text const& text, record_fields const& fields, dataset& data) {
  position where{text.name()};
  read_arrow(text.view(), fields, where, data);
}

void read_samples(file_text const& text, input_format format, record_fields const& fields,
                  progress& shown, dataset& data) {
  std::size_t const before = data.samples.size();
  if (text.view().find_first_not_of(blank) == std::string_view::npos) {
    fail({text.name()}, "the file is empty");
  }
  fields.check_format({text.name()}, format);
  shown.begin("reading " + text.name());
  switch (format) {
    case input_format::jsonl: read_json_lines(text, fields, shown, data); break;
    case input_format::columns: read_json_columns(text, fields, data); break;
    case input_format::csv: read_csv(text, fields, shown, data); break;
    case input_format::numbers: read_numbers(text, fields, shown, data); break;
    case input_format::npy: read_npy(text, fields, data); break;
    case input_format::tar: read_tar(text, fields, data); break;
    case input_format::megatron: read_megatron(text, fields, data); break;
    case input_format::arrow: read_rows(text, fields, data); break;
    case input_format::mds: read_mds(text, fields, shown, data); break;
    case input_format::litdata: read_litdata(text, fields, shown, data); break;
    default: read_json_list(text, fields, shown, data);
  }
  std::size_t const records = data.samples.size() - before;
  if (records == 0) fail({text.name()}, "has no records");
  data.sources.push_back({text.name(), records});
}

/// Where a path of a manifest leads: beside the manifest, or else from the working directory.
std::filesystem::path resolved(file_text const& manifest, manifest_entry const& entry) {
  std::filesystem::path const beside =
      std::filesystem::path(manifest.name()).parent_path() / entry.path;
  std::error_code ignored;
  if (std::filesystem::exists(beside, ignored)) return beside.lexically_normal();
  if (std::filesystem::exists(entry.path, ignored)) return entry.path;
  fail({manifest.name()}, "entry \"" + entry.name + "\" names " + entry.path +
                              ", which is neither beside the manifest (" + beside.string() +
                              ") nor in the working directory");
}

void read_manifest_files(file_text const& manifest, record_fields const& fields, progress& shown,
                         dataset& data) {
  auto const entries = read_manifest(manifest);
  if (entries.empty()) fail({manifest.name()}, "has no entries");
  for (manifest_entry const& entry : entries) {
    file_text const text(resolved(manifest, entry), shown);
    refuse_foreign(text, input_format::detect);
    input_format const format = detected(text);
    if (format == input_format::manifest) {
      fail({manifest.name()},
           "entry \"" + entry.name + "\" names " + text.name() + ", which is a manifest itself");
    }
    read_samples(text, format, fields, shown, data);
  }
}

}  // namespace

record_fields::record_fields(field_names const& fields) : fields_(fields) {
  if (!fields.width.empty()) {
    names_ = {fields.width, fields.height};
  } else if (!fields.images.empty()) {
    names_ = {fields.images};
  }
  names_.push_back(fields.tokens);
  are_plain_ =
      !fields.is_list && fields.token_scale.empty() &&
      std::ranges::none_of(names_, [](auto const& name) { return name.find('.') != name.npos; });
  if (fields.token_scale.empty()) return;
  scale_ = parse_decimal(fields.token_scale);
  if (scale_ && scale_->digits != 0) return;
  throw input_error("--token-scale is " + fields.token_scale +
                    ", must be a number above 0 of at most 19 digits");
}

std::int64_t record_fields::scaled(position const& where, std::string_view field,
                                   std::string_view text) const {
  if (!scale_) return parse_count(where, field, text);
  auto const number = parse_decimal(text);
  auto const product = number ? rounded_up_product(*number, *scale_) : std::nullopt;
  if (product) return *product;
  std::string_view problem = text.starts_with('[') ? "begins a list" : "is not a number";
  if (number) {
    problem = "is too large";
  } else if (is_json_number(text)) {
    problem = text.front() == '-' ? "is negative" : "has more than 19 digits";
  }
  fail_value(where, field, text, problem,
             "a number from 0 whose product with the " + fields_.token_scale +
                 " of --token-scale is at most 9223372036854775807");
}

std::int64_t record_fields::count(position const& where, std::size_t place,
                                  field_value const& value) const {
  std::string const& name = names_[place];
  bool const are_tokens = place + 1 == names_.size();
  bool const must_be_list = are_tokens && fields_.is_list;
  if (must_be_list && !value.elements) {
    fail_value(where, name, value.text, "", "a list, whose elements --length-of counts");
  }
  if (must_be_list) return scaled(where, name, std::to_string(*value.elements));
  return are_tokens ? scaled(where, name, value.text) : parse_count(where, name, value.text);
}

std::int64_t record_fields::tokens(position const& where, std::string_view text) const {
  return scaled(where, {}, text);
}

void record_fields::check_nameless(position const& where, std::string_view kind) const {
  field_names const usual;
  auto const refuse = [&](std::string const& option, std::string const& names) {
    fail(where, "is " + std::string(kind) + " without names, and " + option + " names " + names +
                    "; give a file whose fields have names, such as CSV with a header");
  };
  if (!fields_.width.empty()) {
    refuse("--image-size-fields",
           in_quotation_marks(fields_.width) + " and " + in_quotation_marks(fields_.height));
  }
  if (!fields_.images.empty() && fields_.images != usual.images) {
    refuse("--image-field", in_quotation_marks(fields_.images));
  }
  if (fields_.is_list) refuse("--length-of", in_quotation_marks(fields_.tokens));
  if (fields_.tokens != usual.tokens) refuse("--token-field", in_quotation_marks(fields_.tokens));
}

void record_fields::check_format(position const& where, input_format format) const {
  if (fields_.are_documents && format != input_format::megatron) {
    fail(where, "is no index of Megatron, and --megatron-documents is given");
  }
  if (fields_.tar_member.empty() || format == input_format::tar) return;
  fail(where,
       "is no tar archive, and --tar-member names " + in_quotation_marks(fields_.tar_member));
}

void record_fields::check_no_list(position const& where, std::string_view kind) const {
  if (!fields_.is_list) return;
  fail(where, "is " + std::string(kind) + " without lists, and --length-of names " +
                  in_quotation_marks(fields_.tokens) +
                  ", whose elements it counts; --token-field names a field of numbers");
}

std::size_t record_fields::find(std::string_view name) const {
  auto const found = std::ranges::find(names_, name);
  return static_cast<std::size_t>(found - names_.begin());
}

sample record_fields::make(position const& where, counts const& values) const {
  std::int64_t tokens = values[names_.size() - 1];
  if (names_.size() == 1) return {0, tokens};
  bool const has_size = names_.size() == 3;
  std::int64_t const tiles =
      has_size ? count_tiles(values[0], values[1], fields_.tiles) : values[0];
  std::int64_t added = 0;
  if (__builtin_mul_overflow(tiles, fields_.tokens_per_tile, &added) ||
      __builtin_add_overflow(tokens, added, &tokens)) {
    fail(where, std::to_string(tiles) + " tiles of " + std::to_string(fields_.tokens_per_tile) +
                    " tokens are more than 9223372036854775807 tokens");
  }
  return {tiles, tokens};
}

namespace {

void read_file(std::filesystem::path const& path, input_format format, record_fields const& fields,
               progress& shown, dataset& data) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    for (auto const& file : files_of_folder(path, shown)) {
      read_file(file, format, fields, shown, data);
    }
    return;
  }
  shown.begin("loading " + path.string());
  file_text const text(path, shown);
  refuse_foreign(text, format);
  input_format const actual = format == input_format::detect ? detected(text) : format;
  if (actual == input_format::manifest) {
    read_manifest_files(text, fields, shown, data);
  } else {
    read_samples(text, actual, fields, shown, data);
  }
}

}  // namespace

void read_lengths(std::filesystem::path const& path, input_format format, field_names const& fields,
                  progress& shown, dataset& data) {
  try {
    read_file(path, format, record_fields(fields), shown, data);
  } catch (missing_field const& error) {
    throw input_error(
        std::string(error.what()) +
        (error.name() == fields.tokens
             ? fields.is_list ? " (--length-of names another)" : " (--token-field names another)"
             : " (--image-field names another, --text says that there is none)"));
  }
}

}  // namespace examples
