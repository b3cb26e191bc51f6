// SPDX-License-Identifier: Apache-2.0
#include "profile/kernel_name.h"

#include <gtest/gtest.h>

#include <string>

namespace kernelpro {
namespace {

TEST(KernelName, OneSpellingForWhatToolsWriteDifferently) {
  const std::string want = "ns::scale<4,float,1>";
  for (const char* name :
       {"void ns::scale<(int)4, float, (bool)1>(float *, int)", "ns::scale<4, float, true>",
        "void (anonymous namespace)::ns::scale<4u,float,1>(float*)",
        "unnamed>::ns::scale<4, float, 1>(int)", "<unnamed>::ns::scale<4ul, float, (bool)1>"}) {
    const KernelNameParts parts = PartsOfKernelName(name);
    EXPECT_EQ(parts.templated, want) << name;
    EXPECT_EQ(parts.qualified, "ns::scale") << name;
    EXPECT_EQ(parts.function, "scale") << name;
  }
}

TEST(KernelName, DifferentArgumentsStayDifferent) {
  EXPECT_NE(PartsOfKernelName("f<4>").templated, PartsOfKernelName("f<8>").templated);
  EXPECT_NE(PartsOfKernelName("f<float>").templated, PartsOfKernelName("f<double>").templated);
  EXPECT_NE(PartsOfKernelName("f<unsigned int>").templated, PartsOfKernelName("f<int>").templated);
  EXPECT_NE(PartsOfKernelName("f<x4>").templated, PartsOfKernelName("f<4>").templated);
  EXPECT_NE(PartsOfKernelName("f1<4>").templated, PartsOfKernelName("f<4>").templated);
}

TEST(KernelName, MangledNamesGiveTheFunctionAndNotItsArguments) {
  KernelNameParts parts = PartsOfKernelName("_Z5scalePfi");
  EXPECT_EQ(parts.templated, "scale");
  EXPECT_EQ(parts.function, "scale");
  parts = PartsOfKernelName("_ZN2ns5scaleILi128EfLb1EEEvPT0_");
  EXPECT_EQ(parts.templated, "");
  EXPECT_EQ(parts.qualified, "ns::scale");
  parts = PartsOfKernelName("_ZN3fooIN2ns1xELNS1_4kindE3EE3barIiEEvv");
  EXPECT_TRUE(parts.function == "bar" || parts.function.empty()) << parts.function;
  EXPECT_EQ(PartsOfKernelName("_ZN12_GLOBAL__N_11fEv").qualified, "f");
  EXPECT_EQ(PartsOfKernelName("_Z99f").function, "");
  EXPECT_EQ(PartsOfKernelName("_Z").function, "_Z");
  EXPECT_EQ(PartsOfKernelName("").function, "");
}

TEST(KernelName, ParametersGoAndArgumentsStay) {
  EXPECT_EQ(WithoutParameters("void f<a, b<c>>(Params<(int)4, float>, int)"), "f<a, b<c>>");
  EXPECT_EQ(WithoutParameters("(anonymous namespace)::f(int)"), "(anonymous namespace)::f");
  EXPECT_EQ(WithoutParameters("plain"), "plain");
}

}  // namespace
}  // namespace kernelpro
