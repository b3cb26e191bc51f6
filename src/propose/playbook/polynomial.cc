// SPDX-License-Identifier: Apache-2.0
#include "propose/playbook/polynomial.h"

#include <algorithm>

namespace kernelpro::playbook {
namespace {

/// Factors are those of source text; beyond this they wrap silently in the candidate, not here.
constexpr long long kLargest = 1LL << 40;
/// A product of sums can explode; an index of a kernel has a handful of terms.
constexpr std::size_t kMaxTerms = 64;

}  // namespace

Polynomial Polynomial::Constant(long long value) {
  Polynomial result;
  result.AddTerm({}, value);
  return result;
}

Polynomial Polynomial::Atom(const std::string& name) {
  Polynomial result;
  result.AddTerm({name}, 1);
  return result;
}

void Polynomial::AddTerm(const Monomial& monomial, long long factor) {
  if (factor == 0) {
    return;
  }
  long long& value = terms_[monomial];
  value = std::clamp(value + std::clamp(factor, -kLargest, kLargest), -kLargest, kLargest);
  if (value == 0) {
    terms_.erase(monomial);
  }
}

Polynomial Polynomial::operator+(const Polynomial& other) const {
  Polynomial result = *this;
  for (const auto& [monomial, factor] : other.terms_) {
    result.AddTerm(monomial, factor);
  }
  return result;
}

Polynomial Polynomial::operator-(const Polynomial& other) const {
  Polynomial result = *this;
  for (const auto& [monomial, factor] : other.terms_) {
    result.AddTerm(monomial, -factor);
  }
  return result;
}

Polynomial Polynomial::operator*(const Polynomial& other) const {
  Polynomial result;
  if (terms_.size() * other.terms_.size() > kMaxTerms) {
    return Atom("(large product)");
  }
  for (const auto& [left, a] : terms_) {
    for (const auto& [right, b] : other.terms_) {
      Monomial product = left;
      product.insert(product.end(), right.begin(), right.end());
      std::ranges::sort(product);
      const double size = static_cast<double>(a) * static_cast<double>(b);
      result.AddTerm(product, std::abs(size) > static_cast<double>(kLargest) ? kLargest : a * b);
    }
  }
  return result;
}

bool Polynomial::Mentions(std::string_view atom) const {
  return std::ranges::any_of(terms_, [&](const auto& term) {
    return std::ranges::any_of(term.first, [&](const std::string& name) {
      return name == atom || (name.starts_with('(') && name.find(atom) != std::string::npos);
    });
  });
}

std::optional<Polynomial> Polynomial::Coefficient(const std::string& atom) const {
  Polynomial result;
  for (const auto& [monomial, factor] : terms_) {
    const auto count = std::ranges::count(monomial, atom);
    const bool hidden = std::ranges::any_of(monomial, [&](const std::string& name) {
      return name.starts_with('(') && name.find(atom) != std::string::npos;
    });
    if (count > 1 || hidden) {
      return std::nullopt;
    }
    if (count == 1) {
      Monomial rest = monomial;
      rest.erase(std::ranges::find(rest, atom));
      result.AddTerm(rest, factor);
    }
  }
  return result;
}

Polynomial Polynomial::Without(std::string_view atom, std::string_view other) const {
  Polynomial result;
  for (const auto& [monomial, factor] : terms_) {
    Polynomial term;
    term.AddTerm(monomial, factor);
    if (!term.Mentions(atom) && !term.Mentions(other)) {
      result.AddTerm(monomial, factor);
    }
  }
  return result;
}

std::optional<long long> Polynomial::AsConstant() const {
  if (terms_.empty()) {
    return 0;
  }
  if (terms_.size() == 1 && terms_.begin()->first.empty()) {
    return terms_.begin()->second;
  }
  return std::nullopt;
}

}  // namespace kernelpro::playbook
