// SPDX-License-Identifier: Apache-2.0
#include "propose/playbook/polynomial.h"

#include <gtest/gtest.h>

namespace kernelpro::playbook {
namespace {

Polynomial A(const char* name) {
  return Polynomial::Atom(name);
}

TEST(Polynomial, ProductOfSumsIsMultipliedOut) {
  const Polynomial left = (A("x") + A("y")) * (A("x") - A("y"));
  EXPECT_EQ(left, A("x") * A("x") - A("y") * A("y"));
  EXPECT_NE(left, A("x") * A("x") + A("y") * A("y"));
}

TEST(Polynomial, CoefficientIsTheStride) {
  // (block * size + thread) * cols + c
  const Polynomial index = (A("block") * A("size") + A("thread")) * A("cols") + A("c");
  EXPECT_EQ(index.Coefficient("thread"), A("cols"));
  EXPECT_TRUE(index.Coefficient("c")->IsOne());
  EXPECT_TRUE(index.Coefficient("other")->IsZero());
}

TEST(Polynomial, PowersAndHiddenAtomsHaveNoCoefficient) {
  EXPECT_FALSE((A("x") * A("x")).Coefficient("x").has_value());
  const Polynomial hidden = A("(x%32 x)");
  EXPECT_TRUE(hidden.Mentions("x"));
  EXPECT_FALSE(hidden.Coefficient("x").has_value());
}

TEST(Polynomial, WithoutKeepsTheRest) {
  const Polynomial start = A("(t%32 t)") + Polynomial::Constant(1);
  EXPECT_EQ(start.Without("t", "b").AsConstant(), 1);
  EXPECT_TRUE((A("t") + A("b") * A("n")).Without("t", "b").IsZero());
}

TEST(Polynomial, DifferenceOfEqualsIsZero) {
  const Polynomial p = A("x") * Polynomial::Constant(3) + Polynomial::Constant(5);
  EXPECT_TRUE((p - p).IsZero());
  EXPECT_EQ((p - p).AsConstant(), 0);
  EXPECT_FALSE(p.AsConstant().has_value());
}

}  // namespace
}  // namespace kernelpro::playbook
