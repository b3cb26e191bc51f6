# SPDX-License-Identifier: Apache-2.0
# cmake -DOUTPUT=x.cc -DFILES="a.toml;b.toml" -P embed_specs.cmake: the spec files as C++ strings, so
# that the installed program needs no data folder.
set(entries "")
foreach(file IN LISTS FILES)
  get_filename_component(name ${file} NAME_WE)
  file(READ ${file} text)
  string(APPEND entries "    {\"${name}\", R\"kpspec(${text})kpspec\"},\n")
endforeach()
file(WRITE ${OUTPUT}
"// Generated from src/emulator/model/specs; edit the .toml files there.
#include \"emulator/model/spec_data.h\"

namespace kernelpro::model {

std::vector<SpecText> EmbeddedSpecs() {
  return {
${entries}  };
}

}  // namespace kernelpro::model
")
