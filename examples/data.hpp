// SPDX-License-Identifier: Apache-2.0
// What the training programs read: files, compressed by gzip or not, and the IDX format of MNIST.
#pragma once

#include <zlib.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

namespace data {

/// The contents of a file, decompressed if it is compressed.
inline std::string read_file(const std::string& path) {
  gzFile file = gzopen(path.c_str(), "rb");
  if (file == nullptr) throw std::runtime_error("cannot open " + path + ": " + std::strerror(errno));
  std::string text;
  char buffer[65536];
  int count = 0;
  while ((count = gzread(file, buffer, sizeof buffer)) > 0) text.append(buffer, static_cast<size_t>(count));
  int code = Z_OK;
  const std::string problem = gzerror(file, &code);  // begins with the path
  gzclose(file);
  if (code != Z_OK) throw std::runtime_error("cannot read " + problem);  // also where a compressed file ends early
  return text;
}

/// `name` in `folder`, with or without .gz.
inline std::string read_either(const std::string& folder, const std::string& name) {
  const std::string path = folder + "/" + name;
  gzFile file = gzopen((path + ".gz").c_str(), "rb");
  if (file == nullptr) return read_file(path);
  gzclose(file);
  return read_file(path + ".gz");
}

/// An IDX file of bytes: its extents and elements.
struct Idx {
  std::vector<int64_t> shape;
  std::vector<uint8_t> bytes;
};

inline Idx read_idx(const std::string& folder, const std::string& name) {
  const std::string text = read_either(folder, name), path = folder + "/" + name;
  const auto at = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  if (text.size() < 4 || at(0) != 0 || at(1) != 0 || at(2) != 8)
    throw std::runtime_error(path + " is no IDX file of bytes");
  Idx idx;
  size_t size = 1, start = 4;
  const size_t rank = at(3);
  if (text.size() < 4 + 4 * rank) throw std::runtime_error(path + " ends early");
  for (size_t i = 0; i < rank; ++i, start += 4) {
    idx.shape.push_back(int64_t{at(start)} << 24 | at(start + 1) << 16 | at(start + 2) << 8 | at(start + 3));
    size *= static_cast<size_t>(idx.shape.back());
  }
  if (text.size() - start < size) throw std::runtime_error(path + " ends early");
  idx.bytes.assign(text.begin() + static_cast<std::ptrdiff_t>(start),
                   text.begin() + static_cast<std::ptrdiff_t>(start + size));
  return idx;
}

}  // namespace data
