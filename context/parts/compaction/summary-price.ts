import { type Cost, cachePrices, tierOf } from "../cache/prices.ts";

/** The two requests that can ask for a summary. Tokens. */
export interface SummaryRequests {
  /** The last request, which is sent again with an instruction. */
  readonly last: number;
  /** What of it is read from the cache. 0 if the cache is cold. */
  readonly cached: number;
  readonly instruction: number;
  /** A request with the conversation as a text. */
  readonly transcript: number;
  /** The summary. */
  readonly summary: number;
  /** Thinking before the summary, which only the last request asks for. */
  readonly thinking: number;
}

/** Whether the last request with an instruction costs less than a request of its own. Without a price for reading: no. */
export function isContinuationCheaper(requests: SummaryRequests, cost: Cost | undefined): boolean {
  const { last, cached, instruction, transcript, summary, thinking } = requests;
  const prices = cachePrices(cost, last + instruction);
  if (cost === undefined || prices === undefined) return false;
  const rates = tierOf(cost, last + instruction);
  const read = Math.min(cached, last);
  const continued =
    read * prices.read + (last - read) * prices.miss + instruction * rates.input + (summary + thinking) * rates.output;
  const own = tierOf(cost, transcript);
  return continued < transcript * own.input + summary * own.output;
}
