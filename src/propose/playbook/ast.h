// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kernelpro::playbook {

/// What a rewrite has to tell apart, nothing more. Parentheses and implicit conversions are not
/// nodes: a node's range lies inside the parentheses around it.
enum class NodeKind : std::uint8_t {
  kUnit,
  kFunction,   ///< children: parameters, then the body when defined here
  kParameter,  ///< name, type
  kVariable,   ///< children: the initializer, when there is one, last
  kCompound,
  kDeclaration,  ///< a statement of kVariable children
  kIf,           ///< children: condition, then, else (kEmpty without)
  kFor,          ///< children: init, condition, increment, body (kEmpty where left out)
  kWhile,
  kDo,
  kReturn,
  kBreak,
  kContinue,
  kBinary,       ///< op, two children
  kAssign,       ///< op "=", "+=", ...; two children
  kUnary,        ///< op "-", "!", "pre++", "post++", "*", "&", ...
  kConditional,  ///< three children
  kCall,         ///< name = callee; children: the arguments
  kLaunch,       ///< name = kernel; children: grid, block, shared bytes, stream, arguments...
  kReference,    ///< name; decl when it is declared in the candidate
  kBuiltin,      ///< name = "threadIdx.x", "blockDim.y", ...
  kMember,       ///< name = field; child: the object
  kSubscript,    ///< children: pointer or array, index
  kInteger,
  kFloat,
  kCast,   ///< explicit, any spelling; type = target
  kEmpty,  ///< a part that is not there; begin == end
  kOther,
};

struct Node {
  NodeKind kind = NodeKind::kOther;
  std::uint32_t begin = 0;  ///< byte offsets into the source, end exclusive
  std::uint32_t end = 0;
  std::uint32_t line = 0;
  std::uint32_t name_begin = 0;  ///< of a declaration
  std::string name;
  std::string op;
  std::string type;  ///< canonical, as clang spells it
  /// References only: the value is read. False when it is written, bound or has its address taken.
  bool loaded = false;
  bool in_macro = false;  ///< made by a macro: its text is not in the candidate
  bool is_kernel = false;
  bool is_device = false;
  bool is_shared = false;
  bool is_const = false;
  long long bytes = 0;  ///< of a variable; 0 when unknown
  const Node* decl = nullptr;
  const Node* parent = nullptr;
  std::vector<std::unique_ptr<Node>> children;

  [[nodiscard]] const Node& child(std::size_t i) const { return *children[i]; }

  [[nodiscard]] bool Is(NodeKind wanted) const { return kind == wanted; }

  [[nodiscard]] bool Is(NodeKind wanted, std::string_view wanted_op) const {
    return kind == wanted && op == wanted_op;
  }

  [[nodiscard]] bool IsLoop() const {
    return kind == NodeKind::kFor || kind == NodeKind::kWhile || kind == NodeKind::kDo;
  }
};

/// Preorder; return false from `visit` to skip a node's children.
void Walk(const Node& node, const std::function<bool(const Node&)>& visit);

/// All nodes of a kind below (and including) `node`, in source order.
[[nodiscard]] std::vector<const Node*> FindAll(const Node& node, NodeKind kind);

[[nodiscard]] bool Contains(const Node& outer, const Node& inner);

/// The body of a function, or nothing when it is only declared.
[[nodiscard]] const Node* Body(const Node& function);
[[nodiscard]] std::vector<const Node*> Parameters(const Node& function);

/// The statements of a compound, or the statement itself.
[[nodiscard]] std::vector<const Node*> Statements(const Node& statement);

/// The function around a node; nothing at file level.
[[nodiscard]] const Node* EnclosingFunction(const Node& node);

struct Token {
  enum class Kind : std::uint8_t { kPunctuation, kKeyword, kIdentifier, kLiteral, kComment };
  Kind kind = Kind::kPunctuation;
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
  std::uint32_t line = 0;
};

}  // namespace kernelpro::playbook
