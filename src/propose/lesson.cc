// SPDX-License-Identifier: Apache-2.0
#include "propose/proposer.h"

namespace kernelpro {

std::string_view Name(Lesson::Kind kind) {
  switch (kind) {
    case Lesson::Kind::kError:
      return "error";
    case Lesson::Kind::kDeadEnd:
      return "dead_end";
    case Lesson::Kind::kWin:
      return "win";
    case Lesson::Kind::kFact:
      return "fact";
  }
  return "fact";
}

Lesson::Kind ParseLessonKind(std::string_view name) {
  for (const Lesson::Kind kind :
       {Lesson::Kind::kError, Lesson::Kind::kDeadEnd, Lesson::Kind::kWin}) {
    if (name == Name(kind)) {
      return kind;
    }
  }
  return Lesson::Kind::kFact;
}

}  // namespace kernelpro
