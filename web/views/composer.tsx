import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import type { Way } from "../state/composer.ts";
import type { OpenSession } from "../state/open-session.ts";
import { useCommands } from "./commands.ts";
import { DraftParts } from "./draft-parts.tsx";
import { Later } from "./later.tsx";
import { StopButton } from "./stop-button.tsx";
import { Waits } from "./waits.tsx";
import { Icon } from "./widgets/icon.tsx";

/** On such a device Enter is a line end: there is no other key for it. */
const touch = matchMedia("(hover: none) and (pointer: coarse)");

/** Where people write, and above it what waits. */
export function ComposerView({ open }: { readonly open: OpenSession }): JSX.Element | null {
  const { composer } = open;
  const permission = composer.permission.value;
  if (open.isGone.value)
    return <p class="composer quiet">This session is closed. What was loaded stays until you leave it.</p>;
  return (
    <div class="composer">
      <Waits waiting={composer.waiting.value} />
      {permission.kind === "yes" ? <Writing open={open} /> : <p class="quiet">{permission.words}</p>}
    </div>
  );
}

function Writing({ open }: { readonly open: OpenSession }): JSX.Element {
  const { composer, choices } = open;
  const { draft } = composer;
  const field = useRef<HTMLTextAreaElement>(null);
  const files = useRef<HTMLInputElement>(null);
  const said = useSignal("");
  const isDropping = useSignal(false);
  const commands = useCommands(draft, choices);
  const text = draft.text.value;
  const isRunning = composer.isRunning.value;
  const isSending = composer.isSending.value;
  const hasDraft = text.trim() !== "" || draft.images.value.length > 0 || draft.pieces.value.length > 0;

  useLayoutEffect(() => grow(field.current), [text]);
  useEffect(() => {
    const onResize = (): void => grow(field.current);
    addEventListener("resize", onResize);
    return () => removeEventListener("resize", onResize);
  }, []);

  const send = async (way: Way): Promise<void> => {
    if (isSending || !hasDraft) return;
    said.value = "";
    await composer.send(isRunning ? way : "prompt");
  };
  const addImages = async (given: FileList | undefined | null): Promise<void> => {
    if (given == null || given.length === 0) return;
    const outcome = await draft.addImages(Array.from(given));
    said.value = outcome.kind === "refused" ? outcome.words : "";
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    // 229: a key that an input method takes, where the browser does not say that it composes.
    if (event.isComposing || event.keyCode === 229) return;
    if (commands.onKeyDown(event)) {
      event.preventDefault();
      return;
    }
    if (event.key !== "Enter" || event.shiftKey || event.ctrlKey || event.metaKey || touch.matches) return;
    event.preventDefault();
    if (!event.repeat) void send(event.altKey ? "followUp" : "steer");
  };
  const onPaste = (event: ClipboardEvent): void => {
    const { files: pasted } = event.clipboardData ?? {};
    if (pasted !== undefined && pasted.length > 0) {
      event.preventDefault();
      void addImages(pasted);
    } else if (draft.paste(event.clipboardData?.getData("text/plain") ?? "")) {
      event.preventDefault();
    }
  };
  const onDrop = (event: DragEvent): void => {
    event.preventDefault();
    isDropping.value = false;
    void addImages(event.dataTransfer?.files);
  };
  return (
    <form
      class="writing-form"
      data-dropping={isDropping.value}
      onSubmit={(event) => event.preventDefault()}
      onDragOver={(event) => {
        event.preventDefault();
        isDropping.value = true;
      }}
      onDragLeave={() => {
        isDropping.value = false;
      }}
      onDrop={onDrop}
    >
      <DraftParts draft={draft} />
      {commands.isShown && <Later show={({ CommandList }) => <CommandList commands={commands} choices={choices} />} />}
      <textarea
        ref={field}
        class="field"
        rows={2}
        placeholder={isRunning ? "Say something to this run" : `Message ${open.title.value}`}
        aria-label="Message"
        aria-autocomplete="list"
        aria-controls={commands.isShown ? commands.listId : undefined}
        aria-activedescendant={commands.activeId}
        value={text}
        onInput={({ currentTarget }) => {
          draft.write(currentTarget.value);
          // A text that is too long for the field has left it.
          if (draft.text.value !== currentTarget.value) currentTarget.value = draft.text.value;
        }}
        onKeyDown={onKeyDown}
        onPaste={onPaste}
      />
      <div class="composer-tools">
        <input
          ref={files}
          type="file"
          accept="image/png,image/jpeg,image/gif,image/webp"
          multiple={true}
          hidden={true}
          aria-label="Images"
          onChange={({ currentTarget }) => {
            void addImages(currentTarget.files);
            currentTarget.value = "";
          }}
        />
        <button
          type="button"
          class="button bare square"
          aria-label="Add an image"
          title="Add an image"
          onClick={() => files.current?.click()}
        >
          <Icon name="image" />
        </button>
        <button
          type="button"
          class="button bare square mono"
          aria-label="Commands of pi"
          title="Commands of pi"
          onClick={() => {
            draft.write("/");
            field.current?.focus();
          }}
        >
          /
        </button>
        <span class="push-right" />
        {isRunning && <StopButton composer={composer} said={said} isSign={false} />}
        {isRunning && (
          <button
            type="button"
            class="button"
            disabled={!hasDraft || isSending}
            title="Alt+Enter"
            onClick={() => void send("followUp")}
          >
            After<span class="wide"> this run</span> <kbd class="wide">Alt ⏎</kbd>
          </button>
        )}
        <button
          type="button"
          class="button primary"
          disabled={!hasDraft || isSending}
          title="Enter"
          onClick={() => void send("steer")}
        >
          {isSending ? "Sending…" : "Send"}
          {isRunning && <span class="wide">into this run</span>} <kbd class="wide">⏎</kbd>
        </button>
      </div>
      <p class="said is-bad" role="status">
        {draft.problem.value}
      </p>
      <p class="said" role="status">
        {said.value}
      </p>
    </form>
  );
}

/** As high as its text, within the limits of the styles. */
function grow(field: HTMLTextAreaElement | null): void {
  if (field === null) return;
  field.style.height = "auto";
  field.style.height = `${field.scrollHeight + 2}px`;
}
