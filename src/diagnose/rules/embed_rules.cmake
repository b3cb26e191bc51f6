# SPDX-License-Identifier: Apache-2.0
# cmake -DOUTPUT=rules.cc -DFOLDER=rules -P embed_rules.cmake: the rule files as C++ strings, so that
# the installed program needs no data folder.
file(GLOB files ${FOLDER}/*.toml)
list(SORT files)
set(entries "")
foreach(file IN LISTS files)
  get_filename_component(name ${file} NAME)
  file(READ ${file} text)
  string(APPEND entries "    {\"rules/${name}\", R\"kprule(${text})kprule\"},\n")
endforeach()
file(WRITE ${OUTPUT}
"// Generated from rules/*.toml; edit the files there.
#include \"diagnose/rules/embedded.h\"

namespace kernelpro::diagnose {

const std::vector<EmbeddedRule>& EmbeddedRules() {
  static const std::vector<EmbeddedRule> kRules = {
${entries}  };
  return kRules;
}

}  // namespace kernelpro::diagnose
")
