// SPDX-License-Identifier: Apache-2.0
// Arrow's files and streams, and Parquet, if the programs are built with Arrow C++.
#include "input_error.hpp"
#include "readers.hpp"

#include <string>
#include <string_view>

namespace examples {

namespace {

std::string_view kind_of(std::string_view bytes) {
  if (bytes.starts_with("PAR1")) return "a Parquet file";
  return bytes.starts_with("ARROW1") ? "an Arrow (Feather) file" : "an Arrow stream";
}

}  // namespace

}  // namespace examples

#ifdef OMNIBAL_EXAMPLE_HAS_ARROW

#include "decimal.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <arrow/api.h>
#include <arrow/io/memory.h>
#include <arrow/ipc/reader.h>
#include <parquet/arrow/reader.h>
#include <parquet/arrow/schema.h>
#include <parquet/exception.h>

namespace examples {

namespace {

using namespace std::string_view_literals;

/// Reads the fields of the records of one file, of which each part has the chosen columns only.
class arrow_records {
 public:
  arrow_records(std::string_view bytes, record_fields const& fields, position& where, dataset& data)
      : bytes_(bytes), fields_(fields), where_(where), data_(data) {}

  void read() {
    try {
      if (bytes_.starts_with("PAR1")) return read_parquet();
      if (bytes_.starts_with("ARROW1")) return read_file();
      read_stream();
    } catch (parquet::ParquetException const& error) {
      refuse(error.what());
    }
  }

 private:
  void read_parquet() {
    parquet::arrow::FileReaderBuilder builder;
    check(builder.Open(input()));
    std::unique_ptr<parquet::arrow::FileReader> const reader = value(builder.Build());
    std::shared_ptr<arrow::Schema> schema;
    check(reader->GetSchema(&schema));
    std::vector<int> columns;
    for (auto const& steps : places_in(*schema)) {
      parquet::arrow::SchemaField const* field = &reader->manifest().schema_fields[steps.front()];
      for (std::size_t i = 1; i != steps.size(); ++i) field = &field->children[steps[i]];
      add_leaves(*field, columns);
    }
    std::vector<int> groups;
    for (int i = 0; i != reader->num_row_groups(); ++i) groups.push_back(i);
    auto const batches = value(reader->GetRecordBatchReader(groups, without_repeats(columns)));
    read_all(*batches);
  }

  void read_file() {
    auto const open = [&](arrow::ipc::IpcReadOptions const& options) {
      return value(arrow::ipc::RecordBatchFileReader::Open(input(), options));
    };
    auto const reader = open(options_for(*open(options_with({}))->schema()));
    for (int i = 0; i != reader->num_record_batches(); ++i)
      append(*value(reader->ReadRecordBatch(i)));
  }

  void read_stream() {
    // Without the mark, a stream that is cut between two batches looks whole.
    if (!bytes_.ends_with("\xff\xff\xff\xff\0\0\0\0"sv)) refuse("it has no end");
    auto const open = [&](arrow::ipc::IpcReadOptions const& options) {
      return value(arrow::ipc::RecordBatchStreamReader::Open(input(), options));
    };
    read_all(*open(options_for(*open(options_with({}))->schema())));
  }

  /// The places that lead to a field, in a schema and then in structures.
  using path = std::vector<std::size_t>;

  [[noreturn]] void refuse(std::string const& problem) const {
    fail({where_.file}, "is " + std::string(kind_of(bytes_)) + " that cannot be read: " + problem);
  }

  void check(arrow::Status const& status) const {
    if (!status.ok()) refuse(status.ToString());
  }

  template <class Value>
  Value value(arrow::Result<Value> result) const {
    check(result.status());
    return std::move(result).ValueUnsafe();
  }

  [[nodiscard]] std::shared_ptr<arrow::io::BufferReader> input() const {
    return std::make_shared<arrow::io::BufferReader>(std::make_shared<arrow::Buffer>(bytes_));
  }

  /// The longest name comes first, so that a whole name comes before a path.
  [[nodiscard]] bool search(arrow::FieldVector const& fields, std::string_view rest,
                            path& steps) const {
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i != fields.size(); ++i) {
      std::string_view const name = fields[i]->name();
      bool const leads_on = rest.starts_with(name) && rest.substr(name.size()).starts_with('.') &&
                            fields[i]->type()->id() == arrow::Type::STRUCT;
      if (rest == name || leads_on) order.push_back(i);
    }
    std::ranges::stable_sort(order, std::ranges::greater{},
                             [&](std::size_t i) { return fields[i]->name().size(); });
    for (std::size_t k = 0; k != order.size(); ++k) {
      std::string const& name = fields[order[k]]->name();
      if (k + 1 != order.size() && fields[order[k + 1]]->name() == name) {
        fail({where_.file}, "field \"" + name + "\" occurs twice");
      }
      steps.push_back(order[k]);
      if (name.size() == rest.size()) return true;
      if (search(fields[order[k]]->type()->fields(), rest.substr(name.size() + 1), steps)) {
        return true;
      }
      steps.pop_back();
    }
    return false;
  }

  /// The paths of all fields. Errors: `missing_field`.
  [[nodiscard]] std::vector<path> places_in(arrow::Schema const& schema) const {
    std::vector<path> result;
    for (std::string const& name : fields_.names()) {
      if (search(schema.fields(), name, result.emplace_back())) continue;
      std::vector<std::string> present;
      for (auto const& field : schema.fields()) add_names(*field, "", name, present);
      fail_missing({where_.file}, name, present);
    }
    return result;
  }

  /// The names of a schema, and the paths on the way to a field.
  static void add_names(arrow::Field const& field, std::string const& before,
                        std::string_view wanted, std::vector<std::string>& names) {
    std::string const name = before + field.name();
    bool const leads_on =
        field.type()->id() == arrow::Type::STRUCT && wanted.starts_with(name + '.');
    if (!leads_on) names.push_back(name);
    if (!leads_on) return;
    for (auto const& child : field.type()->fields()) add_names(*child, name + '.', wanted, names);
  }

  static void add_leaves(parquet::arrow::SchemaField const& field, std::vector<int>& columns) {
    if (field.is_leaf()) columns.push_back(field.column_index);
    for (auto const& child : field.children) add_leaves(child, columns);
  }

  /// Options to read these columns; all columns if there are none.
  [[nodiscard]] static arrow::ipc::IpcReadOptions options_with(std::vector<int> const& columns) {
    auto options = arrow::ipc::IpcReadOptions::Defaults();
    options.use_threads = false;
    options.included_fields = columns;
    return options;
  }

  /// Reads no other columns than those of the fields.
  [[nodiscard]] arrow::ipc::IpcReadOptions options_for(arrow::Schema const& schema) const {
    std::vector<int> columns;
    for (path const& steps : places_in(schema)) columns.push_back(static_cast<int>(steps.front()));
    return options_with(without_repeats(columns));
  }

  /// Two fields may be parts of one column.
  [[nodiscard]] static std::vector<int> without_repeats(std::vector<int> columns) {
    std::ranges::sort(columns);
    auto const repeated = std::ranges::unique(columns);
    columns.erase(repeated.begin(), repeated.end());
    return columns;
  }

  void read_all(arrow::RecordBatchReader& batches) {
    while (auto const batch = value(batches.Next())) append(*batch);
  }

  void append(arrow::RecordBatch const& batch) {
    std::vector<std::shared_ptr<arrow::Array>> columns;
    for (path const& steps : places_in(*batch.schema())) {
      std::shared_ptr<arrow::Array> column = batch.column(static_cast<int>(steps.front()));
      check(column->ValidateFull());
      for (std::size_t i = 1; i != steps.size(); ++i) {
        auto const& whole = static_cast<arrow::StructArray const&>(*column);
        column = value(whole.GetFlattenedField(static_cast<int>(steps[i])));
      }
      columns.push_back(std::move(column));
    }
    for (std::int64_t row = 0; row != batch.num_rows(); ++row) {
      ++where_.record;
      record_fields::counts counts{};
      for (std::size_t place = 0; place != columns.size(); ++place) {
        column_value const decoded = decode(*columns[place], row, fields_.names()[place]);
        counts[place] = fields_.count(where_, place, {decoded.text, decoded.elements});
      }
      data_.samples.push_back(fields_.make(where_, counts));
    }
  }

  template <class Array>
  static auto at(arrow::Array const& column, std::int64_t row) {
    return static_cast<Array const&>(column).Value(row);
  }

  template <class List>
  static column_value list_at(arrow::Array const& column, std::int64_t row) {
    return {"[", static_cast<std::size_t>(static_cast<List const&>(column).value_length(row))};
  }

  [[nodiscard]] column_value decode(arrow::Array const& column, std::int64_t row,
                                    std::string const& name) const {
    if (column.IsNull(row)) return {"null"};
    switch (column.type_id()) {
      case arrow::Type::INT8: return {std::to_string(at<arrow::Int8Array>(column, row))};
      case arrow::Type::INT16: return {std::to_string(at<arrow::Int16Array>(column, row))};
      case arrow::Type::INT32: return {std::to_string(at<arrow::Int32Array>(column, row))};
      case arrow::Type::INT64: return {std::to_string(at<arrow::Int64Array>(column, row))};
      case arrow::Type::UINT8: return {std::to_string(at<arrow::UInt8Array>(column, row))};
      case arrow::Type::UINT16: return {std::to_string(at<arrow::UInt16Array>(column, row))};
      case arrow::Type::UINT32: return {std::to_string(at<arrow::UInt32Array>(column, row))};
      case arrow::Type::UINT64: return {std::to_string(at<arrow::UInt64Array>(column, row))};
      case arrow::Type::FLOAT: return {decimal_text(at<arrow::FloatArray>(column, row))};
      case arrow::Type::DOUBLE: return {decimal_text(at<arrow::DoubleArray>(column, row))};
      case arrow::Type::LIST: return list_at<arrow::ListArray>(column, row);
      case arrow::Type::LARGE_LIST: return list_at<arrow::LargeListArray>(column, row);
      case arrow::Type::FIXED_SIZE_LIST: return list_at<arrow::FixedSizeListArray>(column, row);
      case arrow::Type::LIST_VIEW: return list_at<arrow::ListViewArray>(column, row);
      case arrow::Type::LARGE_LIST_VIEW: return list_at<arrow::LargeListViewArray>(column, row);
      default:
        fail({where_.file}, "field \"" + name + "\" has the type " + column.type()->ToString() +
                                ", must be integers, floats of 32 or 64 bits, or lists");
    }
  }

  std::string_view bytes_;
  record_fields const& fields_;
  position& where_;
  dataset& data_;
};

}  // namespace

void read_arrow(std::string_view bytes, record_fields const& fields, position& where,
                dataset& data) {
  if (fields.has_images()) data.kind = sample_kind::images_and_text;
  arrow_records(bytes, fields, where, data).read();
}

}  // namespace examples

#else

namespace examples {

void read_arrow(std::string_view bytes, record_fields const&, position& where, dataset&) {
  fail({where.file}, "is " + std::string(kind_of(bytes)) +
                         ", which is not read without Arrow C++; docs/reference/files.md shows "
                         "how to convert it");
}

}  // namespace examples

#endif
