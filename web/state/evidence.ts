import type { Evidence } from "../../client/browser.ts";

const words: Readonly<Record<Evidence, string>> = {
  headers: "the provider answered with success and began its stream",
  start: "the provider sent its first event",
  content: "the first content of the answer came",
  message: "the whole answer came",
};

/** What a delivery's evidence is. */
export function evidenceWords(evidence: Evidence): string {
  return words[evidence] ?? evidence;
}
