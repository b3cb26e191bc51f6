// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "emulator/ptx/module.h"
#include "emulator/simt/engine.h"
#include "emulator/simt/handler.h"

/// Decoded form of a kernel: what the interpreter walks. Immutable after Program::Create.
namespace kernelpro::simt {

inline constexpr std::uint32_t kNoSlot = 0xffffffffU;
inline constexpr std::uint32_t kNoSegment = 0xffffffffU;

/// Generic addresses of the spaces that are not global memory; above every device address.
inline constexpr std::uint64_t kSharedWindow = 0x1'1000'0000'0000ULL;
inline constexpr std::uint64_t kLocalWindow = 0x1'2000'0000'0000ULL;
inline constexpr std::uint64_t kParamWindow = 0x1'3000'0000'0000ULL;
inline constexpr std::uint64_t kWindowBytes = 1ULL << 32U;

struct Context;
struct Decoded;

/// Everything that is not plain arithmetic and does not steer control: memory, cross-lane,
/// specials. Runs for the lanes in `on` (never empty); false stops the launch (the fault is
/// recorded).
using Operation = bool (*)(Context& context, const Decoded& instruction, LaneMask on);

enum class Kind : std::uint8_t {
  kAlu,
  kOperation,
  // The kinds below end a segment.
  kBranch,
  kBranchIndexed,
  kReturn,
  kExit,
  kTrap,
  kCall,
  kBarrier,
};

/// One instruction, one cache line.
struct alignas(64) Decoded {
  union {
    AluHandler alu = nullptr;
    Operation operation;
  };

  AluOperands operands;
  std::uint32_t guard = kNoSlot;
  std::uint32_t instruction = 0;  ///< index into Function::body

  union {
    std::uint32_t target;     ///< kBranch: segment
    std::uint32_t extra = 0;  ///< index into the side table of its kind
  };

  Kind kind = Kind::kAlu;
  bool guard_negated = false;
};

static_assert(sizeof(Decoded) == 64);

/// Straight-line run of instructions that executes with one lane mask. Fragments of a warp meet and
/// part only at its ends, so executions are counted once per segment. Segments are numbered in the
/// order of control_flow.h: the number is the scheduling priority.
struct Segment {
  std::uint32_t begin = 0, end = 0;  ///< of FunctionCode::code; the terminator, if any, is last
  std::uint32_t body_end = 0;        ///< end without the terminator
  std::uint32_t next = kNoSegment;   ///< fall-through
  std::uint32_t loop_end = 0;        ///< of a loop header: one past the loop's last segment, else 0
  std::uint32_t member_mask = kNoSlot;  ///< of the rendezvous; kNoSlot: the whole warp
  bool rendezvous = false;  ///< begins with an instruction whose lanes must come together
  bool exit_only = false;   ///< nothing but ret or exit
};

enum class AtomicOp : std::uint8_t { kAdd, kMin, kMax, kInc, kDec, kAnd, kOr, kXor, kExch, kCas };

/// A memory instruction's operands.
struct Access {
  ptx::Space space = ptx::Space::kGeneric;
  std::uint8_t width = 4;     ///< bytes of one element
  std::uint8_t elements = 1;  ///< 1, 2, 4
  bool is_store = false;
  bool sign_extend = false;
  bool strong = false;     ///< volatile, relaxed, acquire, release: may be polled
  bool skip_l1 = false;    ///< .cg, .cv, strong
  bool address_64 = true;  ///< width of the address register
  std::uint32_t address = kNoSlot;
  std::uint64_t offset = 0;  ///< two's complement
  std::uint32_t value[4] = {kNoSlot, kNoSlot, kNoSlot, kNoSlot};
  bool value_64[4] = {false, false, false, false};  ///< slot holds 64-bit lanes
  // Atomics: value[] is the destination (kNoSlot for red), operand[] the sources.
  AtomicOp op = AtomicOp::kAdd;
  ptx::Type type = ptx::Type::kNone;
  std::uint32_t operand[4] = {kNoSlot, kNoSlot, kNoSlot, kNoSlot};
  std::uint32_t operand2 = kNoSlot;
  bool operand2_negated = false;  ///< cp.async: of ignore-src
};

/// bar.sync and its relatives.
struct BarrierOp {
  enum class Reduce : std::uint8_t { kNone, kPopc, kAnd, kOr };
  std::uint32_t id = kNoSlot;     ///< slot
  std::uint32_t count = kNoSlot;  ///< slot; kNoSlot: all threads
  bool arrive = false;            ///< does not wait
  bool aligned = true;            ///< the whole warp must come together
  Reduce reduce = Reduce::kNone;
  std::uint32_t source = kNoSlot, destination = kNoSlot;
  bool source_negated = false;
};

enum class Builtin : std::uint8_t { kNone, kVprintf, kAssertFail, kUnknown };

struct CallOp {
  /// One parameter: a lane-major array in the caller's block and one in the callee's.
  struct Copy {
    std::uint32_t from = 0, to = 0, from_stride = 0, to_stride = 0, bytes = 0;
  };

  std::uint32_t callee = 0;  ///< index into KernelCode::functions
  Builtin builtin = Builtin::kNone;
  std::string name;
  std::vector<Copy> arguments, results;
};

/// A vector that is written once, before a function's first instruction.
struct ConstantSlot {
  enum class Kind : std::uint8_t {
    kBits,       ///< bits
    kPredicate,  ///< lane mask: all or none
    kParameter,  ///< of the launch: offset in bits, width
    kSpecial,
    kLocal,  ///< frame's local base + bits
  };
  Kind kind = Kind::kBits;
  bool is_64 = false;
  bool sign_extend = false;  ///< kParameter
  std::uint8_t width = 4;    ///< kParameter
  ptx::Special special = ptx::Special::kOther;
  std::uint64_t bits = 0;
  std::uint32_t slot = 0;
};

/// A .param array of the body or of the function, held per lane in the register block.
struct ParameterArray {
  std::uint32_t slot = 0, stride = 0, bytes = 0;
};

struct FunctionCode {
  const ptx::Function* function = nullptr;
  std::uint32_t index = 0;  ///< in KernelCode::functions
  std::vector<Decoded> code;
  std::vector<Segment> segments;
  std::vector<std::uint32_t> block_of_segment;
  std::vector<std::vector<std::uint32_t>> segment_successors;
  std::vector<Access> accesses;
  std::vector<BarrierOp> barriers;
  std::vector<CallOp> calls;
  std::vector<std::vector<std::uint32_t>> branch_tables;
  std::vector<std::string> notes;  ///< texts of unsupported instructions
  std::vector<ConstantSlot> constants;
  std::map<std::string, ParameterArray, std::less<>> arrays;
  std::vector<ParameterArray> parameters, returns;  ///< of a device function
  std::uint32_t cleared_bytes = 0;                  ///< registers: zeroed at the start
  std::uint32_t block_bytes = 0;
  std::uint64_t local_bytes = 0;  ///< per thread, of this function's frame
};

/// A kernel with the device functions it can call; shared memory is laid out per kernel.
struct KernelCode {
  const ptx::Function* function = nullptr;
  std::vector<std::unique_ptr<FunctionCode>> functions;  ///< [0] is the kernel
  std::uint64_t static_shared = 0;
  std::uint32_t shared_granule = 4;  ///< smallest shared access in bytes: 1, 2 or 4
  std::uint32_t parameter_bytes = 0;
};

class ProgramImpl final : public Program {
 public:
  ProgramImpl(std::shared_ptr<const ptx::Module> module, DeviceMemory& memory);
  ~ProgramImpl() override;
  ProgramImpl(const ProgramImpl&) = delete;
  ProgramImpl& operator=(const ProgramImpl&) = delete;

  [[nodiscard]] const ptx::Module& module() const override { return *module_; }

  [[nodiscard]] std::uint64_t AddressOf(std::string_view symbol) const override;
  [[nodiscard]] std::uint64_t StaticShared(std::string_view kernel) const override;
  [[nodiscard]] const KernelCode* Find(std::string_view kernel) const;

  [[nodiscard]] Status PlaceVariables();
  [[nodiscard]] Status DecodeKernels();

 private:
  [[nodiscard]] Status Initialise(const ptx::Variable& variable);

  std::shared_ptr<const ptx::Module> module_;  ///< shared with whoever reads its text
  DeviceMemory* memory_;
  std::weak_ptr<const void> memory_alive_;
  std::map<std::string, std::uint64_t, std::less<>> addresses_;
  std::map<std::string, std::unique_ptr<KernelCode>, std::less<>> kernels_;
};

}  // namespace kernelpro::simt
