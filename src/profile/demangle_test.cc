// SPDX-License-Identifier: Apache-2.0
#include "profile/demangle.h"

#include <gtest/gtest.h>

#include <string>

namespace kernelpro {
namespace {

TEST(KernelName, IsReadable) {
  EXPECT_EQ(KernelName("_ZN2ns5spillIfEEvPT_"), "ns::spill<float>");
  EXPECT_EQ(KernelName("_Z7k_plainPf"), "k_plain");
  EXPECT_EQ(KernelName("saxpy"), "saxpy");
  EXPECT_EQ(KernelName("void f<(int)4, g<h>>(int (*)(int))"), "f<(int)4, g<h>>");
  EXPECT_EQ(KernelName("void (anonymous namespace)::f(int)"), "(anonymous namespace)::f");
  EXPECT_EQ(KernelName("_Znonsense"), "_Znonsense");
  EXPECT_EQ(KernelName(""), "");
  EXPECT_EQ(KernelName("_Z"), "_Z");
}

/// f(A<int,int>, A<1st,1st>, A<2nd,2nd>, ...): each argument is twice as long as the one before.
TEST(KernelName, AnExpandingNameLosesItsArguments) {
  const auto bomb = [](int levels) {
    constexpr char kDigits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    std::string name = "_ZN2ns1fE1AIiiE";
    for (int i = 0; i < levels; ++i) {
      const std::string before = std::string("S") + kDigits[i + 1] + "_";
      name += "S0_I" + before + before + "E";
    }
    return name;
  };
  EXPECT_EQ(KernelName(bomb(3)), "ns::f");
  EXPECT_EQ(KernelName(bomb(30)), "ns::f") << "a gigabyte when it is expanded";
  EXPECT_EQ(KernelName("_Z1f" + std::string(1'000'000, 'P') + "i"), "f");
  EXPECT_EQ(KernelName("_Z99999999999999999999f" + std::string(5000, 'P')).substr(0, 4), "_Z99");
}

}  // namespace
}  // namespace kernelpro
