# SPDX-License-Identifier: Apache-2.0
# cmake -DOUTPUT=prompts.cc -DFOLDER=prompts -P embed_prompts.cmake: the prompts as C++ strings, so
# that the installed program needs no data folder.
file(GLOB files ${FOLDER}/*.md)
list(SORT files)
set(entries "")
foreach(file IN LISTS files)
  get_filename_component(name ${file} NAME)
  if(name STREQUAL "README.md")
    continue()
  endif()
  # As hex: a list of CMake would eat semicolons and brackets of the text.
  file(READ ${file} hex HEX)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "'\\\\x\\1'," bytes "${hex}")
  string(MAKE_C_IDENTIFIER ${name} id)
  string(APPEND arrays "constexpr char k_${id}[] = {${bytes}'\\0'};\n")
  string(APPEND entries "      {\"${name}\", {k_${id}, sizeof(k_${id}) - 1}},\n")
endforeach()
file(WRITE ${OUTPUT}
"// Generated from prompts/*.md; edit the files there.
#include \"propose/llm/embedded_prompts.h\"

namespace kernelpro::agents {
namespace {

${arrays}
}  // namespace

const std::vector<EmbeddedPrompt>& EmbeddedPrompts() {
  static const std::vector<EmbeddedPrompt> kPrompts = {
${entries}  };
  return kPrompts;
}

}  // namespace kernelpro::agents
")
