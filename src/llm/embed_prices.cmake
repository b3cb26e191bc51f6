# SPDX-License-Identifier: Apache-2.0
# cmake -DOUTPUT=x.cc -DFILE=prices.toml -P embed_prices.cmake: the file as a C++ string, so that the
# installed program needs no data folder.
file(READ ${FILE} text)
file(WRITE ${OUTPUT}
"// Generated from src/llm/prices.toml; edit it there.
#include \"llm/price_data.h\"

namespace kernelpro::llm {

std::string_view EmbeddedPrices() {
  return R\"kpprices(${text})kpprices\";
}

}  // namespace kernelpro::llm
")
