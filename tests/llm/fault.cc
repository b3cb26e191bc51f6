// SPDX-License-Identifier: Apache-2.0
#include "fault.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>

#include "base/check.h"
#include "base/rng.h"

namespace kernelpro::fake {
namespace {

using Kind = FaultKind;
using StepKind = Step::Kind;

std::string Head(const Reply& reply, const std::optional<std::size_t>& length) {
  std::string head = fmt::format("HTTP/1.1 {} {}\r\nContent-Type: {}\r\n", reply.status,
                                 reply.status == 200 ? "OK" : "Status", reply.content_type);
  for (const std::string& header : reply.headers) {
    head += header + "\r\n";
  }
  if (length) {
    head += fmt::format("Content-Length: {}\r\n", *length);
  } else {
    head += "Transfer-Encoding: chunked\r\n";
  }
  return head + "\r\n";
}

std::string Chunk(std::string_view bytes) {
  return fmt::format("{:x}\r\n{}\r\n", bytes.size(), bytes);
}

std::string Joined(const std::vector<std::string>& pieces) {
  std::string all;
  for (const std::string& piece : pieces) {
    all += piece;
  }
  return all;
}

std::string Noise(std::size_t size, Rng& rng) {
  std::string bytes(size, '\0');
  std::ranges::generate(bytes, [&] { return static_cast<char>(rng.Next()); });
  return bytes;
}

/// The reply as sends: the header, then every piece (the last one with the end of the body).
std::vector<Step> Plain(const Reply& reply) {
  std::vector<Step> steps;
  if (!reply.chunked) {
    const std::string body = Joined(reply.pieces);
    steps.push_back({StepKind::kSend, Head(reply, body.size()) + body, {}, reply.pieces.size()});
    return steps;
  }
  steps.push_back({StepKind::kSend, Head(reply, std::nullopt)});
  for (const std::string& piece : reply.pieces) {
    steps.push_back({StepKind::kSend, Chunk(piece), {}, 1});
  }
  steps.push_back({StepKind::kSend, "0\r\n\r\n"});
  return steps;
}

/// The same bytes in pieces of a few, with a wait after each of at most 40.
std::vector<Step> Trickled(const Reply& reply, const Fault& fault, Rng& rng) {
  std::string all;
  for (const Step& step : Plain(reply)) {
    all += step.bytes;
  }
  std::vector<Step> steps;
  const std::size_t size = std::max<std::size_t>(all.size() / 40, 1);
  for (std::size_t at = 0; at < all.size();) {
    const std::size_t take = std::min(all.size() - at, 1 + rng.Below(2 * size));
    steps.push_back({StepKind::kSend, all.substr(at, take)});
    steps.push_back({StepKind::kWait, {}, fault.wait});
    at += take;
  }
  return steps;
}

/// A middle of the pieces: at least one is left out, and of a stream's data some come before it.
std::size_t Middle(const Reply& reply, Rng& rng) {
  const std::size_t first = std::min(reply.head_pieces, reply.pieces.size() - 1);
  const std::size_t last = std::max(first + 1, reply.pieces.size() - reply.tail_pieces);
  return first + rng.Below(last - first);
}

/// All before piece `end`, then `half` of the bytes of that piece, raw.
std::vector<Step> Until(const Reply& reply, std::size_t end, bool half, std::string_view then) {
  std::vector<Step> steps;
  if (!reply.chunked) {
    const std::string body = Joined(reply.pieces);
    const std::string kept = body.substr(0, body.size() / 2);
    steps.push_back({StepKind::kSend,
                     Head(reply, body.size()) + kept + std::string(then),
                     {},
                     reply.pieces.size()});
    return steps;
  }
  steps.push_back({StepKind::kSend, Head(reply, std::nullopt)});
  for (std::size_t i = 0; i < end; ++i) {
    steps.push_back({StepKind::kSend, Chunk(reply.pieces[i]), {}, 1});
  }
  if (half) {
    const std::string& piece = reply.pieces[end];
    // A whole chunk that holds half an event: the HTTP layer has nothing to complain about.
    steps.push_back({StepKind::kSend, Chunk(piece.substr(0, piece.size() / 2)), {}, 1});
  }
  if (!then.empty()) {
    steps.push_back({StepKind::kSend, Chunk(then)});
  }
  return steps;
}

Reply WithBadText(Reply reply) {
  // An overlong form, a lone continuation byte and a surrogate, as three kinds of wrong.
  constexpr std::string_view kBad = "\xC0\xAF\x80\xED\xA0\x80";
  for (std::string& piece : reply.pieces) {
    for (const std::string_view key : {R"("content":")", R"("text":")", R"("arguments":")"}) {
      if (const auto at = piece.find(key); at != std::string::npos) {
        piece.insert(at + key.size(), kBad);
        return reply;
      }
    }
  }
  return reply;
}

Reply Duplicated(const Reply& reply) {
  Reply twice = reply;
  twice.pieces.clear();
  for (std::size_t i = 0; i < reply.pieces.size(); ++i) {
    twice.pieces.push_back(reply.pieces[i]);
    if (i < reply.head_pieces || i + reply.tail_pieces >= reply.pieces.size()) {
      twice.pieces.push_back(reply.pieces[i]);
    }
  }
  return twice;
}

std::vector<Step> WrongLength(const Reply& reply, bool too_long) {
  const std::string body = Joined(reply.pieces);
  const std::size_t told = too_long ? body.size() + 512 : body.size() - body.size() / 3;
  return {{StepKind::kSend, Head(reply, told) + body}, {StepKind::kClose}};
}

std::vector<Step> Page(const Reply& reply, int status) {
  Reply page;
  page.status = status;
  page.content_type = "text/html; charset=utf-8";
  page.headers = reply.headers;
  page.pieces = {
      "<!DOCTYPE html><html><head><title>Sign in</title></head><body>"
      "<p>Please accept the terms of this network.</p></body></html>\n"};
  return Plain(page);
}

std::vector<Step> HugeLine(const Reply& reply, const Fault& fault) {
  std::vector<Step> steps;
  steps.push_back({StepKind::kSend, Head(reply, std::nullopt)});
  for (std::size_t i = 0; reply.chunked && i < reply.head_pieces; ++i) {
    steps.push_back({StepKind::kSend, Chunk(reply.pieces[i]), {}, 1});
  }
  steps.push_back({StepKind::kSend, Chunk(reply.chunked ? "data: {\"pad\":\"" : "{\"pad\":\"")});
  const std::string part = Chunk(std::string(std::size_t{64} << 10U, 'x'));
  for (std::size_t sent = 0; sent < fault.huge_bytes; sent += std::size_t{64} << 10U) {
    steps.push_back({StepKind::kSend, part});
  }
  steps.push_back({StepKind::kClose});
  return steps;
}

std::vector<Step> Then(std::vector<Step> steps, StepKind last) {
  steps.push_back({last});
  return steps;
}

}  // namespace

const std::vector<FaultFacts>& AllFaults() {
  static const std::vector<FaultFacts> kAll = {
      {Kind::kNone, "none", Billing::kWhole, true},
      {Kind::kSlow, "slow", Billing::kWhole, true},
      {Kind::kStalled, "stalled", Billing::kWhole, false},
      {Kind::kStalledMidway, "stalled_midway", Billing::kSent, false},
      {Kind::kResetOnArrival, "reset_on_arrival", Billing::kNothing, false},
      {Kind::kResetBeforeHeaders, "reset_before_headers", Billing::kWhole, false},
      {Kind::kCutInHeaders, "cut_in_headers", Billing::kWhole, false},
      {Kind::kCutInEvent, "cut_in_event", Billing::kSent, false},
      {Kind::kCutBeforeEnd, "cut_before_end", Billing::kWhole, false},
      {Kind::kHalfEventThenGarbage, "half_event_then_garbage", Billing::kSent, false},
      {Kind::kGarbage, "garbage", Billing::kNothing, false},
      {Kind::kHtml200, "html_200", Billing::kNothing, false},
      {Kind::kHtml502, "html_502", Billing::kNothing, false},
      {Kind::kRateLimitedSeconds, "rate_limited_seconds", Billing::kNothing, false},
      {Kind::kRateLimitedDate, "rate_limited_date", Billing::kNothing, false},
      {Kind::kRateLimitedMs, "rate_limited_ms", Billing::kNothing, false},
      {Kind::kQuota, "quota", Billing::kNothing, false},
      {Kind::kServerError, "server_error", Billing::kNothing, false},
      {Kind::kUnavailable, "unavailable", Billing::kNothing, false},
      {Kind::kOverloaded, "overloaded", Billing::kNothing, false},
      {Kind::kEmptyBody, "empty_body", Billing::kNothing, false},
      {Kind::kEmptyAnswer, "empty_answer", Billing::kWhole, true},
      {Kind::kTruncated, "truncated", Billing::kWhole, true},
      {Kind::kRefused, "refused", Billing::kWhole, true},
      {Kind::kInvalidUtf8, "invalid_utf8", Billing::kWhole, false},
      {Kind::kLengthTooLong, "length_too_long", Billing::kWhole, false},
      {Kind::kLengthTooShort, "length_too_short", Billing::kWhole, false},
      {Kind::kErrorEvent, "error_event", Billing::kSent, false},
      {Kind::kRedirect, "redirect", Billing::kNothing, false},
      {Kind::kDuplicatedEvents, "duplicated_events", Billing::kWhole, true},
      {Kind::kHugeLine, "huge_line", Billing::kSent, false},
      {Kind::kNoUsage, "no_usage", Billing::kWhole, true},
  };
  return kAll;
}

const FaultFacts& Facts(FaultKind kind) {
  const auto& all = AllFaults();
  const auto found = std::ranges::find(all, kind, &FaultFacts::kind);
  KP_CHECK(found != all.end());
  return *found;
}

std::optional<FaultKind> FindFault(std::string_view name) {
  const auto& all = AllFaults();
  const auto found = std::ranges::find(all, name, &FaultFacts::name);
  return found == all.end() ? std::nullopt : std::optional(found->kind);
}

std::string HttpDate(std::int64_t unix_seconds) {
  const std::time_t time = unix_seconds;
  std::tm parts{};
  gmtime_r(&time, &parts);
  // Not strftime: names of days must not follow the locale.
  constexpr std::string_view kDays = "SunMonTueWedThuFriSat";
  constexpr std::string_view kMonths = "JanFebMarAprMayJunJulAugSepOctNovDec";
  return fmt::format("{}, {:02} {} {} {:02}:{:02}:{:02} GMT",
                     kDays.substr(3 * static_cast<std::size_t>(parts.tm_wday), 3), parts.tm_mday,
                     kMonths.substr(3 * static_cast<std::size_t>(parts.tm_mon), 3),
                     parts.tm_year + 1900, parts.tm_hour, parts.tm_min, parts.tm_sec);
}

std::vector<Step> Script(const Reply& reply, const Fault& fault, std::uint64_t seed) {
  Rng rng(seed);
  switch (fault.kind) {
    case Kind::kSlow:
      return Trickled(reply, fault, rng);
    case Kind::kStalled:
      return {{StepKind::kStall}};
    case Kind::kStalledMidway:
      return Then(Until(reply, Middle(reply, rng), false, ""), StepKind::kStall);
    case Kind::kResetOnArrival:
    case Kind::kResetBeforeHeaders:
      return {{StepKind::kReset}};
    case Kind::kCutInHeaders: {
      const std::string head = Head(reply, reply.chunked ? std::nullopt : std::optional(100UL));
      return {{StepKind::kSend, head.substr(0, 1 + rng.Below(head.size() - 2))},
              {StepKind::kClose}};
    }
    case Kind::kCutInEvent:
      return Then(Until(reply, Middle(reply, rng), true, ""),
                  rng.Below(2) == 0 ? StepKind::kClose : StepKind::kReset);
    case Kind::kCutBeforeEnd:
      return Then(Until(reply, reply.pieces.size() - 1, false, ""), StepKind::kClose);
    case Kind::kHalfEventThenGarbage:
      return Then(Until(reply, Middle(reply, rng), true, Noise(300, rng)), StepKind::kClose);
    case Kind::kGarbage:
      return {{StepKind::kSend, Noise(400, rng)}, {StepKind::kClose}};
    case Kind::kHtml200:
      return Page(reply, 200);
    case Kind::kHtml502:
      return Page(reply, 502);
    case Kind::kEmptyBody: {
      Reply empty = reply;
      empty.pieces.clear();
      return {{StepKind::kSend, Head(empty, 0)}};
    }
    case Kind::kInvalidUtf8:
      return Plain(WithBadText(reply));
    case Kind::kLengthTooLong:
      return WrongLength(reply, true);
    case Kind::kLengthTooShort:
      return WrongLength(reply, false);
    case Kind::kDuplicatedEvents:
      return Plain(Duplicated(reply));
    case Kind::kHugeLine:
      return HugeLine(reply, fault);
    default:
      // What the others do is in the reply already: another status, another answer.
      return Plain(reply);
  }
}

}  // namespace kernelpro::fake
