// SPDX-License-Identifier: Apache-2.0
#include "fault_judge.h"

#include <fmt/format.h>

#include <algorithm>

namespace kernelpro::fake {
namespace {

using Kind = FaultKind;
using Code = ErrorCode;
using llm::Problem;

/// What another attempt, which goes well, must make of a fault.
enum class Retry : std::uint8_t { kMust, kMay, kNever };

struct Rule {
  std::vector<Code> codes;  ///< of errors that the fault may end in; empty: there must be an answer
  bool may_answer = false;  ///< beside the errors: enough may have come
  Retry retry = Retry::kNever;
  Problem problem = Problem::kNone;
};

Rule RuleOf(const Posed& posed) {
  switch (posed.kind) {
    case Kind::kNone:
    case Kind::kSlow:
    case Kind::kNoUsage:
    case Kind::kDuplicatedEvents:
      return {};
    case Kind::kEmptyAnswer:
      return {.problem = Problem::kEmpty};
    case Kind::kTruncated:
      return {.problem = Problem::kTruncated};
    case Kind::kRefused:
      return {.problem = Problem::kRefused};
    case Kind::kStalled:
    case Kind::kStalledMidway:
      return {{Code::kTimeout}, false, Retry::kMust};
    case Kind::kResetOnArrival:
    case Kind::kResetBeforeHeaders:
    case Kind::kCutInHeaders:
    case Kind::kCutInEvent:
    case Kind::kHtml502:
    case Kind::kRateLimitedSeconds:
    case Kind::kRateLimitedDate:
    case Kind::kRateLimitedMs:
    case Kind::kServerError:
    case Kind::kUnavailable:
    case Kind::kOverloaded:
    case Kind::kErrorEvent:
      return {{Code::kUnavailable}, false, Retry::kMust};
    case Kind::kCutBeforeEnd:  // all that matters came before [DONE]; half a JSON text is no answer
    case Kind::kLengthTooLong:
      return {{Code::kUnavailable}, posed.stream, Retry::kMust};
    case Kind::kQuota:
      return {{Code::kUnavailable}, false, Retry::kNever};
    case Kind::kRedirect:
      return {{Code::kInvalidArgument}, false, Retry::kNever};
    case Kind::kGarbage:
    case Kind::kHtml200:
      return {{Code::kParse}, false, Retry::kNever};
    case Kind::kInvalidUtf8:
      return {{Code::kParse}, true, Retry::kMay};
    case Kind::kHalfEventThenGarbage:
    case Kind::kEmptyBody:
    case Kind::kLengthTooShort:
    case Kind::kHugeLine:
      return {{Code::kParse, Code::kUnavailable}, false, Retry::kMay};
  }
  return {};
}

/// Bytes that follow a lead byte; nothing for one that cannot lead.
std::optional<std::size_t> Following(unsigned char lead) {
  if (lead < 0x80) {
    return 0;
  }
  if (lead < 0xC2 || lead > 0xF4) {
    return std::nullopt;
  }
  return lead < 0xE0 ? 1 : lead < 0xF0 ? 2 : 3;
}

bool IsUtf8(std::string_view text) {
  while (!text.empty()) {
    const auto more = Following(static_cast<unsigned char>(text[0]));
    if (!more || *more >= text.size() || !std::ranges::all_of(text.substr(1, *more), [](char c) {
          return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U;
        })) {
      return false;
    }
    text.remove_prefix(*more + 1);
  }
  return true;
}

double BillOf(const LedgerEntry& entry, const llm::Price& price) {
  const Tokens& tokens = entry.tokens;
  const auto plain = static_cast<double>(tokens.prompt - tokens.cached - tokens.cache_written);
  return (plain * price.input + static_cast<double>(tokens.cached) * price.cache_read +
          static_cast<double>(tokens.cache_written) * price.cache_write +
          static_cast<double>(tokens.completion) * price.output) /
         1e6;
}

class Judge {
 public:
  Judge(const Posed& posed, const Ended& ended, const std::vector<LedgerEntry>& bill,
        const llm::Price& price)
      : posed_(posed), ended_(ended), bill_(bill), price_(price), rule_(RuleOf(posed)) {}

  std::vector<std::string> Violations(const std::string& secret) {
    if (ended_.response) {
      Answer(*ended_.response);
      Money(*ended_.response);
    } else {
      Failure();
    }
    NoLeak(secret);
    const auto delivered = std::ranges::count_if(bill_, &LedgerEntry::delivered);
    Demand(delivered <= 1, "asked again after a whole answer");
    return std::move(found_);
  }

 private:
  void Demand(bool good, std::string_view what) {
    if (!good) {
      found_.push_back(fmt::format("{}, {}, {}: {}", Facts(posed_.kind).name,
                                   posed_.always ? "always" : "once",
                                   posed_.stream ? "stream" : "one piece", what));
    }
  }

  /// Whether the answer came from an exchange without a fault.
  [[nodiscard]] bool Healed(const llm::ChatResponse& response) const {
    return !posed_.always && response.attempts > 1;
  }

  void Answer(const llm::ChatResponse& response) {
    if (Healed(response)) {
      Demand(rule_.retry != Retry::kNever && !rule_.codes.empty(), "tried again without need");
      Demand(response.text == posed_.text, "another text than the question's");
      Demand(response.problem == Problem::kNone, "a problem after an attempt that went well");
      return;
    }
    if (!rule_.codes.empty() && !rule_.may_answer) {
      Demand(false, "an answer where none can be had");
      return;
    }
    Demand(response.problem == rule_.problem,
           fmt::format("problem '{}' and not '{}'", Name(response.problem), Name(rule_.problem)));
    Demand((response.problem == Problem::kNone) == response.problem_text.empty(),
           "a problem without words, or words without one");
    if (posed_.kind == Kind::kInvalidUtf8) {
      Demand(IsUtf8(response.text), "a text that is no UTF-8");
    } else if (posed_.kind == Kind::kTruncated) {
      Demand(posed_.text.starts_with(response.text), "a truncated text of something else");
    } else if (rule_.problem == Problem::kNone) {
      Demand(response.text == posed_.text, "another text than the question's");
    }
    Demand(posed_.kind != Kind::kNoUsage || response.usage.estimated,
           "a usage that nobody told is called exact");
  }

  void Money(const llm::ChatResponse& response) {
    const double billed = Bill(bill_, price_);
    constexpr double kRounding = 1e-12;
    Demand(response.cost >= billed - kRounding,
           fmt::format("{} dollars accounted for {} billed", response.cost, billed));
    if (response.attempts == 1 && !response.usage.estimated && bill_.size() == 1) {
      Demand(response.cost <= billed + kRounding, "more accounted than was billed");
      Demand(response.usage.input == bill_[0].tokens.prompt &&
                 response.usage.output == bill_[0].tokens.completion &&
                 response.usage.cache_read == bill_[0].tokens.cached,
             "another usage than the server's");
    }
  }

  void Failure() {
    Demand(!rule_.codes.empty(), "no answer: " + ended_.message);
    Demand(posed_.always || rule_.retry != Retry::kMust, "not tried again: " + ended_.message);
    Demand(rule_.codes.empty() || std::ranges::find(rule_.codes, ended_.code) != rule_.codes.end(),
           fmt::format("error code {}: {}", static_cast<int>(ended_.code), ended_.message));
    Demand(!ended_.message.empty(), "an error without words");
    Demand(ended_.message.size() < 2000 && IsUtf8(ended_.message), "an error that cannot be shown");
  }

  void NoLeak(const std::string& secret) {
    Demand(!Leaks(ended_.message, secret), "the key is in the error");
    if (ended_.response) {
      const llm::ChatResponse& response = *ended_.response;
      Demand(!Leaks(response.text + response.problem_text + response.model + response.id, secret),
             "the key is in the answer");
    }
  }

  const Posed& posed_;
  const Ended& ended_;
  const std::vector<LedgerEntry>& bill_;
  const llm::Price& price_;
  const Rule rule_;
  std::vector<std::string> found_;
};

}  // namespace

double Bill(const std::vector<LedgerEntry>& bill, const llm::Price& price) {
  double dollars = 0;
  for (const LedgerEntry& entry : bill) {
    dollars += BillOf(entry, price);
  }
  return dollars;
}

bool Leaks(std::string_view text, std::string_view secret) {
  constexpr std::size_t kRun = 12;
  for (std::size_t i = 0; i + kRun <= secret.size(); ++i) {
    if (text.find(secret.substr(i, kRun)) != std::string_view::npos) {
      return true;
    }
  }
  return false;
}

std::vector<std::string> Violations(const Posed& posed, const Ended& ended,
                                    const std::vector<LedgerEntry>& bill, const llm::Price& price,
                                    const std::string& secret) {
  return Judge(posed, ended, bill, price).Violations(secret);
}

}  // namespace kernelpro::fake
