import type { DeliveryState } from "../../client/browser.ts";
import type { PushGroupName } from "../state/pushes.ts";
import type { IconName } from "./widgets/icon.tsx";

interface Sign {
  readonly icon: IconName;
  readonly tone: string;
  readonly word: string;
}

const signs: Readonly<Record<DeliveryState, Sign>> = {
  accepted: { icon: "wait", tone: "quiet", word: "stored, not in the conversation yet" },
  held: { icon: "wait", tone: "quiet", word: "waits for its moment" },
  inserted: { icon: "into", tone: "is-accent", word: "in the conversation, not sent yet" },
  prepared: { icon: "into", tone: "is-accent", word: "in a request, not confirmed yet" },
  delivered: { icon: "check", tone: "is-good", word: "the model has it" },
  answered: { icon: "finished", tone: "is-good", word: "the model has answered it" },
  parked: { icon: "wait", tone: "is-warn", word: "waits for the next run" },
  dropped: { icon: "failed", tone: "is-bad", word: "dropped" },
  cancelled: { icon: "cross", tone: "quiet", word: "cancelled" },
  expired: { icon: "cross", tone: "is-warn", word: "expired" },
  failed: { icon: "failed", tone: "is-bad", word: "failed" },
  unknown: { icon: "question", tone: "is-warn", word: "it is not known if the model has it" },
};

const unanswered: Sign = { icon: "check", tone: "is-warn", word: "the model has it, without a complete answer" };

/** The sign and the words of a push's state. */
export function signOfPush(state: DeliveryState, isUnanswered = false): Sign {
  if (isUnanswered) return unanswered;
  return signs[state] ?? { icon: "info", tone: "quiet", word: state };
}

export const pushGroupTitles: Readonly<Record<PushGroupName, string>> = {
  parked: "Wait for the next run",
  waiting: "Wait for their moment",
  underWay: "On the way to an answer",
  undelivered: "Not delivered",
  unanswered: "Delivered, without a complete answer",
  answered: "Answered",
  withdrawn: "Withdrawn or expired",
};
