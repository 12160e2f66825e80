import { useSignal } from "@preact/signals";
import type { InputHTMLAttributes, JSX } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";
import type { NewSession } from "../state/sessions.ts";
import { BackButton } from "./back-button.tsx";
import { usePage, useWorkspace } from "./context.ts";
import { goBack, openSession } from "./moves.ts";

/** A form for a new session. */
export function NewSessionForm(): JSX.Element {
  const { app, looks } = usePage();
  const { sessions } = useWorkspace();
  const [lastDirectory = ""] = sessions.directories.value;
  const form = useSignal<NewSession>({ directory: lastDirectory });
  const isStarting = useSignal(false);
  const problem = useSignal("");
  const directoriesId = useId();
  const element = useRef<HTMLFormElement>(null);
  useEffect(() => {
    const fields = element.current?.querySelectorAll<HTMLElement>("input, textarea");
    fields?.[lastDirectory === "" ? 0 : 1]?.focus();
  }, []);
  const start = async (): Promise<void> => {
    isStarting.value = true;
    problem.value = "";
    const outcome = await sessions.create(form.value);
    isStarting.value = false;
    if (outcome.kind === "done") openSession(app, looks, outcome.value);
    else problem.value = outcome.words;
  };
  const field = (name: keyof NewSession): Pick<InputHTMLAttributes, "value" | "onInput" | "class"> => ({
    class: "field",
    value: form.value[name] ?? "",
    onInput: ({ currentTarget }) => {
      form.value = { ...form.value, [name]: currentTarget.value };
    },
  });
  return (
    <div class="sheet-page">
      <header class="sheet-head">
        <BackButton />
        <h1>New session</h1>
      </header>
      <form
        ref={element}
        class="form"
        onSubmit={(event) => {
          event.preventDefault();
          if (!isStarting.value) void start();
        }}
      >
        <label>
          <span>Directory</span>
          <input
            {...field("directory")}
            required={true}
            pattern="/.*"
            title="An absolute path"
            list={directoriesId}
            autocomplete="off"
          />
          <datalist id={directoriesId}>
            {sessions.directories.value.map((directory) => (
              <option key={directory} value={directory} />
            ))}
          </datalist>
        </label>
        <label>
          <span>First message</span>
          <textarea
            class="field"
            rows={4}
            value={form.value.firstPrompt ?? ""}
            onInput={({ currentTarget }) => {
              form.value = { ...form.value, firstPrompt: currentTarget.value };
            }}
          />
        </label>
        <div class="two">
          <label>
            <span>Name</span>
            <input {...field("name")} maxLength={200} autocomplete="off" />
          </label>
          <label>
            <span>Model</span>
            <input {...field("model")} placeholder="pi's default" autocomplete="off" />
          </label>
          <label>
            <span>Profile</span>
            <input {...field("profile")} placeholder="none" autocomplete="off" />
          </label>
        </div>
        {problem.value !== "" && (
          <p class="is-bad" role="alert">
            {problem.value}
          </p>
        )}
        <div class="row-of-buttons">
          <button type="submit" class="button primary" aria-disabled={isStarting.value}>
            {isStarting.value ? "Starting pi…" : "Start"}
          </button>
          <button type="button" class="button" onClick={() => goBack(looks)}>
            Cancel
          </button>
        </div>
      </form>
    </div>
  );
}
