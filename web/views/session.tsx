import type { ComponentChildren, JSX } from "preact";
import type { OpenSession } from "../state/open-session.ts";
import { ComposerView } from "./composer.tsx";
import { usePage } from "./context.ts";
import { Conversation } from "./conversation.tsx";
import { WithFigures } from "./later.tsx";
import type { Tab } from "./place.ts";
import { QuestionZone } from "./question-zone.tsx";
import { SessionHeader } from "./session-header.tsx";
import { panelId, SessionTabs, tabId } from "./session-tabs.tsx";
import { Trouble } from "./trouble.tsx";

/** One session: what was said, what it asks, and where people write; its requests, context, costs and tree. */
export function SessionView({ open }: { readonly open: OpenSession }): JSX.Element {
  const { looks } = usePage();
  const tab = looks.tab.value;
  return (
    <>
      <SessionHeader open={open} />
      <SessionTabs open={open} />
      <WithFigures open={open}>
        {({ Tape, ContextActions }, figures) => (
          <>
            {tab !== "tree" && <Tape open={open} figures={figures} />}
            <ContextActions open={open} figures={figures} />
          </>
        )}
      </WithFigures>
      <div class="panels">
        {/* It stays where a person has scrolled to. */}
        <Panel tab="conversation" isHidden={tab !== "conversation"}>
          <Conversation conversation={open.conversation} />
        </Panel>
        {tab !== "conversation" && (
          <Panel tab={tab} isHidden={false}>
            <WithFigures open={open} saysSo={true}>
              {({ RequestsView, ContextView, CostView, TreeView }, figures) => {
                if (tab === "requests") return <RequestsView open={open} figures={figures} />;
                if (tab === "context") return <ContextView open={open} figures={figures} />;
                if (tab === "tree") return <TreeView open={open} figures={figures} />;
                return <CostView costs={figures.costs} />;
              }}
            </WithFigures>
          </Panel>
        )}
      </div>
      <Trouble open={open} />
      <QuestionZone questions={open.questions.value} />
      {tab === "conversation" && <ComposerView open={open} />}
    </>
  );
}

interface PanelProps {
  readonly tab: Tab;
  readonly isHidden: boolean;
  readonly children: ComponentChildren;
}

function Panel({ tab, isHidden, children }: PanelProps): JSX.Element {
  const isOfFigures = tab !== "conversation";
  return (
    <div
      class={isOfFigures ? "panel figures" : "panel"}
      role="tabpanel"
      id={panelId(tab)}
      aria-labelledby={tabId(tab)}
      inert={isHidden}
      tabIndex={isOfFigures ? 0 : undefined}
    >
      {children}
    </div>
  );
}
