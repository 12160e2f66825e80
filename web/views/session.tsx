import type { JSX } from "preact";
import type { OpenSession } from "../state/open-session.ts";
import { ComposerView } from "./composer.tsx";
import { Conversation } from "./conversation.tsx";
import { QuestionZone } from "./question-zone.tsx";
import { SessionHeader } from "./session-header.tsx";
import { Trouble } from "./trouble.tsx";

/** One session: what was said, what it asks, and where people write. */
export function SessionView({ open }: { readonly open: OpenSession }): JSX.Element {
  return (
    <>
      <SessionHeader open={open} />
      <Conversation conversation={open.conversation} />
      <Trouble open={open} />
      <QuestionZone questions={open.questions.value} />
      <ComposerView open={open} />
    </>
  );
}
