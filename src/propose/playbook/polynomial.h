// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kernelpro::playbook {

/// An integer polynomial over named atoms (threadIdx.x, a parameter, a loop variable, or the text
/// of something that is not a polynomial). It answers what index expressions are asked: how far do
/// two neighbouring threads lie apart, and are two indices the same.
class Polynomial {
 public:
  Polynomial() = default;

  [[nodiscard]] static Polynomial Constant(long long value);
  [[nodiscard]] static Polynomial Atom(const std::string& name);

  [[nodiscard]] Polynomial operator+(const Polynomial& other) const;
  [[nodiscard]] Polynomial operator-(const Polynomial& other) const;
  [[nodiscard]] Polynomial operator*(const Polynomial& other) const;
  [[nodiscard]] bool operator==(const Polynomial& other) const = default;

  [[nodiscard]] bool Mentions(std::string_view atom) const;
  /// The factor of `atom`: nothing when it occurs in a power or inside an opaque atom.
  [[nodiscard]] std::optional<Polynomial> Coefficient(const std::string& atom) const;
  /// The terms that mention neither atom.
  [[nodiscard]] Polynomial Without(std::string_view atom, std::string_view other) const;
  [[nodiscard]] std::optional<long long> AsConstant() const;

  [[nodiscard]] bool IsZero() const { return terms_.empty(); }

  [[nodiscard]] bool IsOne() const { return AsConstant() == 1; }

 private:
  using Monomial = std::vector<std::string>;  // sorted

  void AddTerm(const Monomial& monomial, long long factor);

  std::map<Monomial, long long> terms_;  // no zero factors
};

}  // namespace kernelpro::playbook
