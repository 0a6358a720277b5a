// SPDX-License-Identifier: Apache-2.0
#include "file_text.hpp"

#include "input_error.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>

#include <unistd.h>
#include <zlib.h>
#ifdef OMNIBAL_EXAMPLE_HAS_ZSTD
#include <zstd.h>
#endif

namespace examples {

namespace {

constexpr std::size_t padding_bytes = 64;
constexpr std::size_t chunk_bytes = std::size_t{1} << 22;
constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
constexpr std::string_view gzip_magic = "\x1F\x8B";
constexpr std::string_view zstd_magic = "\x28\xB5\x2F\xFD";

struct close_file {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using open_file = std::unique_ptr<std::FILE, close_file>;

std::FILE* open(std::filesystem::path const& path) {
  if (path != "-") return std::fopen(path.c_str(), "rb");
  int const copy = dup(STDIN_FILENO);
  return copy < 0 ? nullptr : fdopen(copy, "rb");
}

/// The size where it is known beforehand; a pipe has none.
std::size_t expected_bytes(std::filesystem::path const& path) {
  std::error_code error;
  auto const size = std::filesystem::file_size(path, error);
  return error ? 0 : static_cast<std::size_t>(size);
}

std::string read_bytes(std::string const& name, std::filesystem::path const& path,
                       progress& shown) {
  errno = 0;
  open_file const file(open(path));
  if (!file) fail({name}, std::string("cannot open: ") + std::strerror(errno));
  std::size_t const expected = expected_bytes(path);
  // A small file needs no large buffer.
  std::size_t const chunk = expected == 0 ? chunk_bytes : std::min(expected + 1, chunk_bytes);
  std::string bytes(expected + chunk, '\0');
  std::size_t size = 0;
  while (true) {
    if (bytes.size() - size < chunk) bytes.resize(2 * bytes.size());
    std::size_t const got = std::fread(bytes.data() + size, 1, chunk, file.get());
    size += got;
    shown.update(size, expected);
    if (got == chunk) continue;
    if (std::ferror(file.get()) != 0) {
      fail({name}, std::string("cannot read: ") + std::strerror(errno));
    }
    bytes.resize(size);
    return bytes;
  }
}

struct end_inflate {
  void operator()(z_stream* stream) const { inflateEnd(stream); }
};

/// What gzip has compressed in one member after another. Errors: `input_error` for one that is
/// damaged or cut, and for bytes behind the last one, but zeros, which tapes leave there.
std::string expanded(std::string const& name, std::string const& packed) {
  constexpr int gzip_alone = 15 + 16;
  z_stream stream{};
  if (inflateInit2(&stream, gzip_alone) != Z_OK) fail({name}, "cannot read: no memory for zlib");
  std::unique_ptr<z_stream, end_inflate> const ended(&stream);
  std::string result(4 * packed.size() + chunk_bytes, '\0');
  std::size_t size = 0;
  std::size_t read = 0;
  while (read != packed.size()) {
    if (result.size() - size < chunk_bytes) result.resize(2 * result.size());
    auto const given = static_cast<unsigned>(std::min(packed.size() - read, chunk_bytes));
    // zlib does not write through it.
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data() + read));
    stream.avail_in = given;
    stream.next_out = reinterpret_cast<Bytef*>(result.data() + size);
    stream.avail_out = static_cast<unsigned>(chunk_bytes);
    int const code = inflate(&stream, Z_NO_FLUSH);
    size += chunk_bytes - stream.avail_out;
    read += given - stream.avail_in;
    if (code == Z_STREAM_END) {
      std::string_view const rest = std::string_view(packed).substr(read);
      if (rest.find_first_not_of('\0') == rest.npos) {
        result.resize(size);
        return result;
      }
      if (!rest.starts_with(gzip_magic)) {
        fail({name}, "cannot read: " + std::to_string(rest.size()) +
                         " bytes that are not compressed by gzip follow those that are");
      }
      inflateReset(&stream);
    } else if (code != Z_OK && code != Z_BUF_ERROR) {
      fail({name}, std::string("cannot read: ") +
                       (stream.msg != nullptr ? stream.msg : "what gzip compressed is damaged"));
    }
  }
  // The last bytes may still wait for room.
  while (true) {
    if (result.size() - size < chunk_bytes) result.resize(2 * result.size());
    stream.next_out = reinterpret_cast<Bytef*>(result.data() + size);
    stream.avail_out = static_cast<unsigned>(chunk_bytes);
    int const code = inflate(&stream, Z_NO_FLUSH);
    std::size_t const got = chunk_bytes - stream.avail_out;
    size += got;
    if (code == Z_STREAM_END) break;
    if (got == 0) fail({name}, "cannot read: unexpected end of what gzip compressed");
  }
  result.resize(size);
  return result;
}

#ifdef OMNIBAL_EXAMPLE_HAS_ZSTD

struct free_stream {
  void operator()(ZSTD_DCtx* stream) const { ZSTD_freeDCtx(stream); }
};

/// What zstd has compressed in one frame after another. Errors: `input_error` for one that is
/// damaged or cut, needs a window above 128 MiB or a dictionary, and for other bytes behind the
/// last one.
std::string expanded_zstd(std::string const& name, std::string const& packed) {
  std::unique_ptr<ZSTD_DCtx, free_stream> const stream(ZSTD_createDCtx());
  if (!stream) fail({name}, "cannot read: no memory for zstd");
  std::string result(std::min(4 * packed.size(), chunk_bytes) + ZSTD_DStreamOutSize(), '\0');
  ZSTD_inBuffer input{packed.data(), packed.size(), 0};
  std::size_t size = 0;
  std::size_t left = 1;
  while (input.pos != input.size || left != 0) {
    if (result.size() - size < ZSTD_DStreamOutSize()) result.resize(2 * result.size());
    ZSTD_outBuffer output{result.data() + size, result.size() - size, 0};
    std::size_t const before = input.pos;
    left = ZSTD_decompressStream(stream.get(), &output, &input);
    if (ZSTD_isError(left) != 0) {
      fail({name}, std::string("cannot read what zstd compressed: ") + ZSTD_getErrorName(left));
    }
    size += output.pos;
    if (output.pos == 0 && input.pos == before && left != 0) {
      fail({name}, "cannot read: unexpected end of what zstd compressed");
    }
  }
  result.resize(size);
  return result;
}

#else

[[noreturn]] std::string expanded_zstd(std::string const& name, std::string const&) {
  fail({name}, "is a zstd file, and the program is built without libzstd; give it `zstd -dc " +
                   name + "` on the standard input");
}

#endif

}  // namespace

file_text::file_text(std::filesystem::path const& path, progress& shown, file_content content)
    : name_(path == "-" ? "standard input" : path.string()) {
  bytes_ = read_bytes(name_, path, shown);
  bool const is_plain = content == file_content::plain;
  if (!is_plain && bytes_.starts_with(gzip_magic)) {
    bytes_ = expanded(name_, bytes_);
  } else if (!is_plain && bytes_.starts_with(zstd_magic)) {
    bytes_ = expanded_zstd(name_, bytes_);
  } else if (content == file_content::compressed) {
    fail({name_}, "is compressed by neither gzip nor zstd; decompress it first");
  }
  size_ = bytes_.size();
  bytes_.append(padding_bytes, ' ');
  if (content == file_content::text && view().starts_with(byte_order_mark)) {
    begin_ = byte_order_mark.size();
    size_ -= begin_;
  }
}

}  // namespace examples
