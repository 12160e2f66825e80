import { WireError } from "../../client/browser.ts";

/** How an action ended. A refusal has words for people: those of the daemon where it refused. */
export type Outcome<Value = undefined> =
  | { readonly kind: "done"; readonly value: Value }
  | { readonly kind: "refused"; readonly words: string };

export const done: Outcome = { kind: "done", value: undefined };

/** Makes a call and turns its rejection into words. Never rejects. */
export async function outcomeOf<Value>(call: () => Promise<Value>): Promise<Outcome<Value>> {
  try {
    return { kind: "done", value: await call() };
  } catch (error) {
    return { kind: "refused", words: wordsOf(error) };
  }
}

/** The options of `pi-rpcd web` that give the page's token a capability. */
const options: Readonly<Record<string, string>> = { bash: "--bash", payload: "--payload" };

/** What an error says to people, and the option that would have allowed the call. */
export function wordsOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (!(error instanceof WireError) || error.kind !== "forbidden") return error.message;
  const { needs } = error.data;
  if (needs === "prompt") return `${error.message} Open the page again without --read-only.`;
  const option = typeof needs === "string" ? options[needs] : undefined;
  return option === undefined ? error.message : `${error.message} Open the page again with \`pi-rpcd web ${option}\`.`;
}
