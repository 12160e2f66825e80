import type { GroupName, SessionRow } from "../state/sessions.ts";
import type { IconName } from "./widgets/icon.tsx";

interface Sign {
  readonly icon: IconName;
  readonly tone: string;
  readonly word: string;
}

const signs: Readonly<Record<GroupName, Sign>> = {
  waits: { icon: "question", tone: "is-warn", word: "waits for you" },
  failed: { icon: "failed", tone: "is-bad", word: "failed" },
  runs: { icon: "running", tone: "is-accent", word: "running" },
  finished: { icon: "finished", tone: "is-good", word: "finished" },
  awake: { icon: "awake", tone: "quiet", word: "idle" },
  asleep: { icon: "asleep", tone: "quiet", word: "asleep" },
};

/** The sign and the word of a session's state. */
export function signOf({ group, info }: SessionRow): Sign {
  const sign = signs[group];
  if (info.state === "starting") return { ...sign, word: "starting" };
  if (info.state === "closing") return { ...sign, word: "closing" };
  if (group === "failed") return { ...sign, word: info.state === "crashed" ? "crashed" : "lost something" };
  return sign;
}
