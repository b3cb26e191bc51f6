// SPDX-License-Identifier: Apache-2.0
#include "propose/playbook/parser.h"

#include <clang-c/Index.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "base/file.h"

namespace kernelpro::playbook {
namespace {

constexpr std::size_t kMaxSourceBytes = 1U << 20U;
/// Clang itself stops at 256 brackets; a chain of operators may nest deeper in the tree.
constexpr int kMaxDepth = 400;

std::string Take(CXString string) {
  const char* text = clang_getCString(string);
  std::string copy = text == nullptr ? "" : text;
  clang_disposeString(string);
  return copy;
}

struct Place {
  std::uint32_t offset = 0;
  std::uint32_t line = 0;
  bool in_main_file = false;
};

Place PlaceOf(CXSourceLocation location) {
  unsigned offset = 0;
  unsigned line = 0;
  clang_getExpansionLocation(location, nullptr, &line, nullptr, &offset);
  return {offset, line, clang_Location_isFromMainFile(location) != 0};
}

std::vector<CXCursor> ChildrenOf(CXCursor cursor) {
  std::vector<CXCursor> children;
  clang_visitChildren(
      cursor,
      [](CXCursor child, CXCursor /*parent*/, CXClientData data) {
        static_cast<std::vector<CXCursor>*>(data)->push_back(child);
        return CXChildVisit_Continue;
      },
      &children);
  return children;
}

NodeKind KindOf(CXCursorKind kind) {
  static const std::map<CXCursorKind, NodeKind> kKinds = {
      {CXCursor_FunctionDecl, NodeKind::kFunction},
      {CXCursor_FunctionTemplate, NodeKind::kFunction},
      {CXCursor_CXXMethod, NodeKind::kFunction},
      {CXCursor_ParmDecl, NodeKind::kParameter},
      {CXCursor_VarDecl, NodeKind::kVariable},
      {CXCursor_CompoundStmt, NodeKind::kCompound},
      {CXCursor_DeclStmt, NodeKind::kDeclaration},
      {CXCursor_IfStmt, NodeKind::kIf},
      {CXCursor_ForStmt, NodeKind::kFor},
      {CXCursor_WhileStmt, NodeKind::kWhile},
      {CXCursor_DoStmt, NodeKind::kDo},
      {CXCursor_ReturnStmt, NodeKind::kReturn},
      {CXCursor_BreakStmt, NodeKind::kBreak},
      {CXCursor_ContinueStmt, NodeKind::kContinue},
      {CXCursor_BinaryOperator, NodeKind::kBinary},
      {CXCursor_CompoundAssignOperator, NodeKind::kAssign},
      {CXCursor_UnaryOperator, NodeKind::kUnary},
      {CXCursor_ConditionalOperator, NodeKind::kConditional},
      {CXCursor_CallExpr, NodeKind::kCall},
      {CXCursor_DeclRefExpr, NodeKind::kReference},
      {CXCursor_MemberRefExpr, NodeKind::kMember},
      {CXCursor_ArraySubscriptExpr, NodeKind::kSubscript},
      {CXCursor_IntegerLiteral, NodeKind::kInteger},
      {CXCursor_FloatingLiteral, NodeKind::kFloat},
      {CXCursor_CStyleCastExpr, NodeKind::kCast},
      {CXCursor_CXXStaticCastExpr, NodeKind::kCast},
      {CXCursor_CXXFunctionalCastExpr, NodeKind::kCast},
      {CXCursor_CXXReinterpretCastExpr, NodeKind::kCast},
      {CXCursor_NullStmt, NodeKind::kEmpty},
      {CXCursor_AsmStmt, NodeKind::kCall},
      {CXCursor_GotoStmt, NodeKind::kBreak},
  };
  const auto found = kKinds.find(kind);
  return found == kKinds.end() ? NodeKind::kOther : found->second;
}

bool IsBuiltinIndex(std::string_view name) {
  return name == "threadIdx" || name == "blockIdx" || name == "blockDim" || name == "gridDim";
}

/// Turns cursors into nodes. One object per parse.
class TreeBuilder {
 public:
  TreeBuilder(std::string_view text, const std::vector<Token>& tokens)
      : text_(text), tokens_(tokens) {}

  [[nodiscard]] Result<std::unique_ptr<Node>> Build(CXTranslationUnit unit) {
    auto root = std::make_unique<Node>();
    root->kind = NodeKind::kUnit;
    root->end = static_cast<std::uint32_t>(text_.size());
    for (const CXCursor child : ChildrenOf(clang_getTranslationUnitCursor(unit))) {
      if (PlaceOf(clang_getCursorLocation(child)).in_main_file) {
        Add(child, *root, 0);
      }
    }
    if (too_deep_line_ != 0) {
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("line {}: nested more than {} levels deep; split the expression",
                              too_deep_line_, kMaxDepth));
    }
    Resolve();
    return root;
  }

 private:
  void Add(CXCursor cursor, Node& parent, int depth) {
    auto node = Convert(cursor, depth);
    if (node != nullptr) {
      node->parent = &parent;
      parent.children.push_back(std::move(node));
    }
  }

  [[nodiscard]] std::unique_ptr<Node> Convert(CXCursor cursor, int depth) {
    const CXSourceRange range = clang_getCursorExtent(cursor);
    const Place begin = PlaceOf(clang_getRangeStart(range));
    const Place end = PlaceOf(clang_getRangeEnd(range));
    if (depth > kMaxDepth) {
      too_deep_line_ = begin.line;
      return nullptr;
    }
    const CXCursorKind kind = clang_getCursorKind(cursor);
    if (clang_isAttribute(kind) != 0 || clang_isReference(kind) != 0 || end.offset == 0) {
      return nullptr;  // Names of types, and default arguments that nobody wrote.
    }
    std::vector<CXCursor> children = ChildrenOf(cursor);
    if (auto collapsed = Collapse(cursor, children, depth)) {
      return std::move(*collapsed);
    }
    auto node = std::make_unique<Node>();
    node->kind = KindOf(kind);
    node->begin = begin.offset;
    node->end = end.offset;
    node->line = begin.line;
    node->name = Take(clang_getCursorSpelling(cursor));
    node->type = Take(clang_getTypeSpelling(clang_getCanonicalType(clang_getCursorType(cursor))));
    node->in_macro = FromMacro(range);
    FillDeclaration(cursor, children, *node);
    FillOperator(cursor, *node);
    if (kind == CXCursor_AsmStmt) {
      node->name = "asm";
    } else if (node->kind == NodeKind::kCall) {
      AddCall(children, *node, depth);
      return node;
    }
    for (const CXCursor child : children) {
      Add(child, *node, depth + 1);
    }
    Finish(*node);
    return node;
  }

  /// Parentheses and implicit conversions give way to what they hold.
  [[nodiscard]] std::optional<std::unique_ptr<Node>> Collapse(CXCursor cursor,
                                                              const std::vector<CXCursor>& children,
                                                              int depth) {
    const CXCursorKind kind = clang_getCursorKind(cursor);
    std::vector<CXCursor> real;
    for (const CXCursor child : children) {
      if (PlaceOf(clang_getRangeEnd(clang_getCursorExtent(child))).offset != 0 &&
          clang_isReference(clang_getCursorKind(child)) == 0) {
        real.push_back(child);
      }
    }
    if (real.size() != 1) {
      return std::nullopt;
    }
    const bool implicit_call =
        kind == CXCursor_CallExpr &&
        clang_equalRanges(clang_getCursorExtent(cursor), clang_getCursorExtent(real[0])) != 0;
    if (kind != CXCursor_UnexposedExpr && kind != CXCursor_ParenExpr && !implicit_call) {
      return std::nullopt;
    }
    auto node = Convert(real[0], depth + 1);
    if (node != nullptr && kind == CXCursor_UnexposedExpr) {
      node->loaded = true;
    }
    return node;
  }

  /// True when the range's ends are not themselves in the candidate's text (a macro argument is).
  static bool FromMacro(CXSourceRange range) {
    const auto from_macro = [](CXSourceLocation location) {
      unsigned spelled = 0;
      unsigned expanded = 0;
      CXFile spelled_file = nullptr;
      CXFile expanded_file = nullptr;
      clang_getSpellingLocation(location, &spelled_file, nullptr, nullptr, &spelled);
      clang_getExpansionLocation(location, &expanded_file, nullptr, nullptr, &expanded);
      return spelled != expanded || clang_File_isEqual(spelled_file, expanded_file) == 0;
    };
    return from_macro(clang_getRangeStart(range));
  }

  void FillDeclaration(CXCursor cursor, const std::vector<CXCursor>& children, Node& node) {
    if (node.kind != NodeKind::kVariable && node.kind != NodeKind::kParameter &&
        node.kind != NodeKind::kFunction) {
      if (node.kind == NodeKind::kReference) {
        const CXCursor target = clang_getCursorReferenced(cursor);
        const Place place = PlaceOf(clang_getCursorLocation(target));
        if (place.in_main_file) {
          wanted_.emplace_back(&node, place.offset);
        }
      }
      return;
    }
    const Place place = PlaceOf(clang_getCursorLocation(cursor));
    node.name_begin = place.offset;
    node.line = place.line;
    declared_.emplace(place.offset, &node);
    for (const CXCursor child : children) {
      const CXCursorKind kind = clang_getCursorKind(child);
      node.is_shared |= kind == CXCursor_CUDASharedAttr;
      node.is_kernel |= kind == CXCursor_CUDAGlobalAttr;
      node.is_device |= kind == CXCursor_CUDADeviceAttr;
    }
    if (node.kind == NodeKind::kVariable) {
      const CXType type = clang_getCursorType(cursor);
      node.is_const = clang_isConstQualifiedType(type) != 0;
      const long long bytes = clang_Type_getSizeOf(type);
      node.bytes = bytes > 0 ? bytes : 0;
    }
  }

  static void FillOperator(CXCursor cursor, Node& node) {
    const CXCursorKind kind = clang_getCursorKind(cursor);
    if (kind == CXCursor_BinaryOperator || kind == CXCursor_CompoundAssignOperator) {
      node.op =
          Take(clang_getBinaryOperatorKindSpelling(clang_getCursorBinaryOperatorKind(cursor)));
      if (node.op == "=") {
        node.kind = NodeKind::kAssign;
      }
    } else if (kind == CXCursor_UnaryOperator) {
      const CXUnaryOperatorKind op = clang_getCursorUnaryOperatorKind(cursor);
      node.op = Take(clang_getUnaryOperatorKindSpelling(op));
      if (op == CXUnaryOperator_PostInc || op == CXUnaryOperator_PostDec) {
        node.op = "post" + node.op;
      } else if (op == CXUnaryOperator_PreInc || op == CXUnaryOperator_PreDec) {
        node.op = "pre" + node.op;
      }
    }
  }

  void AddCall(const std::vector<CXCursor>& children, Node& node, int depth) {
    std::vector<CXCursor> arguments = children;
    // A call of a named function shows the name as its first child; a constructor does not.
    if (!arguments.empty() && IsCalleeOf(arguments[0], node)) {
      auto callee = Convert(arguments[0], depth + 1);
      arguments.erase(arguments.begin());
      // A reference on the way out must not be resolved later.
      DropWanted(callee.get());
    }
    if (!arguments.empty() &&
        Take(clang_getCursorSpelling(arguments[0])) == "__cudaPushCallConfiguration") {
      node.kind = NodeKind::kLaunch;
      AddConfiguration(arguments[0], node, depth);
      arguments.erase(arguments.begin());
    }
    for (const CXCursor argument : arguments) {
      Add(argument, node, depth + 1);
    }
  }

  static bool IsCalleeOf(CXCursor first, const Node& call) {
    if (Take(clang_getCursorSpelling(first)) != call.name) {
      return false;
    }
    const CXType type = clang_getCanonicalType(clang_getCursorType(first));
    const CXType pointee = clang_getPointeeType(type);
    const CXTypeKind kind = pointee.kind == CXType_Invalid ? type.kind : pointee.kind;
    return kind == CXType_FunctionProto || kind == CXType_FunctionNoProto ||
           clang_getCursorKind(first) == CXCursor_MemberRefExpr;
  }

  void AddConfiguration(CXCursor configuration, Node& launch, int depth) {
    std::vector<CXCursor> parts = ChildrenOf(configuration);
    for (std::size_t i = 1; i < 5; ++i) {
      std::unique_ptr<Node> part;
      if (i < parts.size()) {
        part = Convert(parts[i], depth + 2);
      }
      if (part == nullptr) {
        part = std::make_unique<Node>();
        part->kind = NodeKind::kEmpty;
        part->begin = part->end = launch.begin;
      }
      part->parent = &launch;
      launch.children.push_back(std::move(part));
    }
  }

  void DropWanted(const Node* node) {
    if (node != nullptr) {
      Walk(*node, [&](const Node& n) {
        std::erase_if(wanted_, [&](const auto& entry) { return entry.first == &n; });
        return true;
      });
    }
  }

  void Finish(Node& node) {
    if (node.kind == NodeKind::kMember && node.children.size() == 1 &&
        IsBuiltinIndex(node.child(0).name) && node.child(0).decl == nullptr) {
      node.kind = NodeKind::kBuiltin;
      node.name.clear();
      for (const char c : text_.substr(node.begin, node.end - node.begin)) {
        if (c != ' ' && c != '\n' && c != '\t' && c != '\r') {
          node.name += c;
        }
      }
      node.children.clear();
    }
    if (node.kind == NodeKind::kVariable) {
      // Clang lists the bounds of an array from the inside out.
      std::ranges::stable_sort(node.children, {}, [](const auto& child) { return child->begin; });
    }
    if (node.kind == NodeKind::kFor) {
      FillFor(node);
    }
    if (node.kind == NodeKind::kIf && node.children.size() == 2) {
      AppendEmpty(node, node.end);
    }
  }

  static std::unique_ptr<Node> Empty(Node& parent, std::uint32_t offset) {
    auto empty = std::make_unique<Node>();
    empty->kind = NodeKind::kEmpty;
    empty->begin = empty->end = offset;
    empty->parent = &parent;
    return empty;
  }

  static void AppendEmpty(Node& parent, std::uint32_t offset) {
    parent.children.push_back(Empty(parent, offset));
  }

  /// Clang lists only the parts that exist; the two semicolons of the head tell which they are.
  void FillFor(Node& node) {
    std::array<std::uint32_t, 3> stops = {};  // the two semicolons and the closing parenthesis
    std::size_t found = 0;
    int depth = 0;
    for (const Token& token : tokens_) {
      if (token.begin < node.begin || token.kind != Token::Kind::kPunctuation) {
        continue;
      }
      if (token.begin >= node.end || found == stops.size()) {
        break;
      }
      const char c = text_[token.begin];
      depth += (c == '(' || c == '{' || c == '[') ? 1 : 0;
      depth -= (c == ')' || c == '}' || c == ']') ? 1 : 0;
      if ((c == ';' && depth == 1) || (c == ')' && depth == 0)) {
        stops[found++] = token.begin;
      }
    }
    std::vector<std::unique_ptr<Node>> parts = std::move(node.children);
    node.children.clear();
    std::size_t next = 0;
    for (std::size_t slot = 0; slot < 3; ++slot) {
      const bool here = next + 1 < parts.size() && parts[next]->begin < stops[slot];
      node.children.push_back(here ? std::move(parts[next++]) : Empty(node, stops[slot]));
    }
    node.children.push_back(next < parts.size() ? std::move(parts[next]) : Empty(node, node.end));
  }

  void Resolve() {
    for (const auto& [node, offset] : wanted_) {
      const auto found = declared_.find(offset);
      if (found != declared_.end()) {
        node->decl = found->second;
      }
    }
  }

  std::string_view text_;
  const std::vector<Token>& tokens_;
  std::map<std::uint32_t, const Node*> declared_;
  std::vector<std::pair<Node*, std::uint32_t>> wanted_;
  std::uint32_t too_deep_line_ = 0;
};

std::vector<Token> TokensOf(CXTranslationUnit unit, CXFile file, std::size_t size) {
  const CXSourceRange whole =
      clang_getRange(clang_getLocationForOffset(unit, file, 0),
                     clang_getLocationForOffset(unit, file, static_cast<unsigned>(size)));
  CXToken* raw = nullptr;
  unsigned count = 0;
  clang_tokenize(unit, whole, &raw, &count);
  std::vector<Token> tokens;
  tokens.reserve(count);
  for (unsigned i = 0; i < count; ++i) {
    const CXSourceRange range = clang_getTokenExtent(unit, raw[i]);
    Token token;
    unsigned offset = 0;
    unsigned line = 0;
    clang_getSpellingLocation(clang_getRangeStart(range), nullptr, &line, nullptr, &offset);
    token.begin = offset;
    token.line = line;
    clang_getSpellingLocation(clang_getRangeEnd(range), nullptr, nullptr, nullptr, &offset);
    token.end = offset;
    token.kind = static_cast<Token::Kind>(clang_getTokenKind(raw[i]));
    if (token.end <= size && token.begin < token.end) {
      tokens.push_back(token);
    }
  }
  clang_disposeTokens(unit, raw, count);
  return tokens;
}

/// The first error in the candidate itself. Errors inside headers are left out: with precompiled
/// headers clang 19 reports differences inside CUDA's own ones that mean nothing here.
std::optional<Error> FirstError(CXTranslationUnit unit) {
  for (unsigned i = 0; i < clang_getNumDiagnostics(unit); ++i) {
    const CXDiagnostic diagnostic = clang_getDiagnostic(unit, i);
    const CXDiagnosticSeverity severity = clang_getDiagnosticSeverity(diagnostic);
    const Place place = PlaceOf(clang_getDiagnosticLocation(diagnostic));
    const std::string text = Take(clang_getDiagnosticSpelling(diagnostic));
    clang_disposeDiagnostic(diagnostic);
    const bool counts =
        severity == CXDiagnostic_Fatal || (severity == CXDiagnostic_Error && place.in_main_file);
    if (counts) {
      return Fail(ErrorCode::kParse,
                  fmt::format("clang cannot parse the candidate, line {}: {}", place.line, text));
    }
  }
  return std::nullopt;
}

}  // namespace

struct Parser::State {
  explicit State(TemporaryFolder temporary) : folder(std::move(temporary)) {}

  State(const State&) = delete;
  State& operator=(const State&) = delete;

  ~State() {
    if (unit != nullptr) {
      clang_disposeTranslationUnit(unit);
    }
    if (index != nullptr) {
      clang_disposeIndex(index);
    }
  }

  TemporaryFolder folder;
  std::string candidate_path;
  std::string header_path;
  std::vector<std::string> arguments;
  std::string header;
  CXIndex index = nullptr;
  CXTranslationUnit unit = nullptr;
};

Parser::Parser(std::unique_ptr<State> state) : state_(std::move(state)) {}

Parser::~Parser() = default;

Result<std::unique_ptr<Parser>> Parser::Create(
    const std::filesystem::path& cuda_include_folder,
    const std::vector<std::filesystem::path>& cpp_include_folders,
    const std::filesystem::path& clang_resource_folder) {
  if (!std::filesystem::exists(cuda_include_folder / "cuda_runtime.h")) {
    return Fail(ErrorCode::kNotFound,
                fmt::format("no cuda_runtime.h in {}; name the CUDA toolkit's include folder",
                            cuda_include_folder.string()));
  }
  KP_ASSIGN_OR_RETURN(TemporaryFolder folder, TemporaryFolder::Create("kernelpro-playbook"));
  auto state = std::make_unique<State>(std::move(folder));
  const std::filesystem::path root = state->folder.path();
  state->candidate_path = (root / "candidate.cu").string();
  state->header_path = (root / "kernelpro_task.h").string();
  // Clang precompiles headers only for files that exist; CUDA 13 has no texture header any more,
  // clang 19 still includes it.
  for (const char* name : {"candidate.cu", "kernelpro_task.h", "texture_fetch_functions.h"}) {
    KP_RETURN_IF_ERROR(WriteFileAtomically(root / name, ""));
  }
  state->arguments = {"-x",
                      "cuda",
                      "--cuda-path=" + cuda_include_folder.parent_path().string(),
                      "--cuda-gpu-arch=sm_90a",
                      "-nocudalib",
                      "--cuda-device-only",
                      "-Wno-unknown-cuda-version",
                      "-I" + root.string(),
                      "-I" + (cuda_include_folder / "cccl").string(),
                      "-std=c++20",
                      "-Xclang",
                      "-target-sdk-version=12.5",
                      "-D__CUDACC_VER_MAJOR__=13",
                      "-D__CUDACC_VER_MINOR__=0",
                      "-D__NV_ATOMIC_RELAXED=0",
                      "-D__nv_atomic_load_n(p,o)=(*(p))",
                      "-ferror-limit=0"};
  // In clang's own order: its wrappers around C++ headers, those, its replacements of C headers.
  const auto add = [&](const std::filesystem::path& include) {
    state->arguments.push_back("-isystem" + include.string());
  };
  if (!clang_resource_folder.empty()) {
    add(clang_resource_folder / "include" / "cuda_wrappers");
  }
  if (!cpp_include_folders.empty()) {
    state->arguments.emplace_back("-nostdinc++");
    std::ranges::for_each(cpp_include_folders, add);
  }
  if (!clang_resource_folder.empty()) {
    add(clang_resource_folder / "include");
  }
  state->index = clang_createIndex(0, 0);
  return std::unique_ptr<Parser>(new Parser(std::move(state)));
}

Result<SourceModel> Parser::Parse(std::string_view source, std::string_view task_header) {
  if (source.size() > kMaxSourceBytes) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("the candidate has {} bytes; the playbook reads at most {}",
                            source.size(), kMaxSourceBytes));
  }
  if (source.find('\0') != std::string_view::npos) {
    return Fail(ErrorCode::kInvalidArgument, "the candidate has a zero byte: it is not a source");
  }
  const std::string text(source);
  State& state = *state_;
  std::array<CXUnsavedFile, 2> files = {
      CXUnsavedFile{state.candidate_path.c_str(), text.c_str(), text.size()},
      CXUnsavedFile{state.header_path.c_str(), task_header.data(), task_header.size()}};
  int failed = 0;
  if (state.unit != nullptr && state.header == task_header) {
    failed = clang_reparseTranslationUnit(state.unit, files.size(), files.data(),
                                          clang_defaultReparseOptions(state.unit));
  } else {
    if (state.unit != nullptr) {
      clang_disposeTranslationUnit(state.unit);
      state.unit = nullptr;
    }
    std::vector<const char*> arguments;
    for (const std::string& argument : state.arguments) {
      arguments.push_back(argument.c_str());
    }
    const unsigned options = CXTranslationUnit_PrecompiledPreamble |
                             CXTranslationUnit_CreatePreambleOnFirstParse |
                             CXTranslationUnit_KeepGoing;
    failed = clang_parseTranslationUnit2(state.index, state.candidate_path.c_str(),
                                         arguments.data(), static_cast<int>(arguments.size()),
                                         files.data(), files.size(), options, &state.unit);
    state.header = task_header;
  }
  if (failed != 0 || state.unit == nullptr) {
    if (state.unit != nullptr) {
      clang_disposeTranslationUnit(state.unit);
      state.unit = nullptr;
    }
    return Fail(ErrorCode::kParse,
                fmt::format("clang gave up on the candidate (libclang error {})", failed));
  }
  if (auto error = FirstError(state.unit)) {
    return std::move(*error);
  }
  CXFile file = clang_getFile(state.unit, state.candidate_path.c_str());
  std::vector<Token> tokens = TokensOf(state.unit, file, text.size());
  TreeBuilder builder(text, tokens);
  KP_ASSIGN_OR_RETURN(std::unique_ptr<Node> root, builder.Build(state.unit));
  return SourceModel(text, std::move(root), std::move(tokens));
}

}  // namespace kernelpro::playbook
