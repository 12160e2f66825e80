import type { ReadyState } from "../pi/ready-state.ts";
import type { PiEvent } from "../pi/records.ts";

/** Those who need to know of pi's events. */
export interface EventReaders {
  runStarted(): void;
  agentEnded(): void;
  runSettled(event: PiEvent): void;
  /** A compaction begins or ends. */
  compacting(isOn: boolean): void;
  messageEnded(event: PiEvent): void;
  /** pi's queue of users' messages has changed. */
  queueChanged(event: PiEvent): void;
  /** pi says something of itself. */
  learned(said: Partial<ReadyState>): void;
  /** pi has written an entry that is no message's end. */
  entryAppended(event: PiEvent): void;
  /** An extension shows something, or asks. */
  asked(event: PiEvent): void;
}

/** What the daemon itself needs to know of pi's events. High-rate ones do not come here. */
export function lookAt(event: PiEvent, readers: EventReaders): void {
  switch (event.type) {
    case "agent_start":
      readers.runStarted();
      break;
    case "agent_end":
      readers.agentEnded();
      break;
    case "compaction_start":
    case "compaction_end":
      readers.compacting(event.type === "compaction_start");
      break;
    case "message_end":
      readers.messageEnded(event);
      break;
    case "queue_update":
      readers.queueChanged(event);
      break;
    case "entry_appended":
      readers.entryAppended(event);
      break;
    case "agent_settled":
      readers.runSettled(event);
      break;
    case "session_info_changed":
      readers.learned({ sessionName: textOf(event["name"]) });
      break;
    case "thinking_level_changed":
      readers.learned({ thinkingLevel: textOf(event["level"]) });
      break;
    case "extension_ui_request":
      readers.asked(event);
      break;
    default:
  }
}

function textOf(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}
