// SPDX-License-Identifier: Apache-2.0
// What reductions and scans combine values in. Sums of floats carry what they have lost, so that their error does not
// grow with the number of terms.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "source.hpp"

namespace vulkan {

class Accumulator {
 public:
  // Without `compensates` sums carry nothing: of few terms, or added as a tree.
  Accumulator(Source& source, std::string_view kind, int32_t dtype, bool compensates = true);

  bool is_compensated() const { return is_compensated_; }

  // The parts of a state, which are variables with names of a prefix and a number.
  size_t parts() const { return types_.size(); }
  const std::string& type(size_t part) const { return types_[part]; }
  int32_t part_dtype(size_t part) const { return dtypes_[part]; }

  std::string declare(const std::string& name) const;                        // as the identity
  std::string add(const std::string& name, const std::string& value) const;  // one value
  // `parts` are expressions, one per part.
  std::string merge(const std::string& name, const std::vector<std::string>& parts) const;
  std::string assign(const std::string& name, const std::vector<std::string>& parts) const;
  std::string result(const std::string& name) const;
  // Statements that combine the values of the array `v`, whose length is a power of two, in v[0]: by halves, without
  // compensation.
  std::string combine_array(const std::string& v, int length) const;
  std::vector<std::string> names(const std::string& name) const;

 private:
  std::string combined(const std::string& a, const std::string& b) const;

  Source& source_;
  std::string kind_;
  int32_t dtype_;
  bool is_compensated_, is_complex_;
  std::vector<std::string> types_, identities_;
  std::vector<int32_t> dtypes_;
};

// The value that leaves all others unchanged.
std::string identity_text(std::string_view kind, int32_t dtype);

}  // namespace vulkan
