import type { Signal } from "@preact/signals";
import type { JSX } from "preact";
import type { Choices, ModelChoice } from "../state/choices.ts";
import type { Outcome } from "../state/outcome.ts";

interface ModelFieldsProps {
  readonly choices: Choices;
  /** Gets why a choice was refused. */
  readonly said: Signal<string>;
}

const askPi = "ask pi";

/** The model and the level of thinking: what is known can be chosen. pi is only asked, and so started, by a choice. */
export function ModelFields({ choices, said }: ModelFieldsProps): JSX.Element {
  const model = choices.model.value;
  const level = choices.level.value;
  const models = choices.models.value;
  const levels = choices.levels.value;
  const tell = async (outcome: Promise<Outcome>): Promise<void> => {
    const result = await outcome;
    said.value = result.kind === "refused" ? result.words : "";
  };
  const known = withCurrent(models.kind === "known" ? models.value : [], model);
  const knownLevels = levels.kind === "known" ? levels.value : [];
  const allLevels = level === undefined || knownLevels.includes(level) ? knownLevels : [level, ...knownLevels];
  const more = (kind: string): JSX.Element | null =>
    kind === "unknown" || kind === "refused" ? (
      <option value={askPi}>{choices.isAsleep.value ? "Ask pi (starts it)…" : "Ask pi…"}</option>
    ) : kind === "asking" ? (
      <option disabled={true}>Asking pi…</option>
    ) : null;
  return (
    <div class="model-fields">
      <select
        class="field"
        aria-label="Model"
        value={model === undefined ? "" : keyOf(model)}
        onChange={({ currentTarget }) => {
          const chosen = known.find((choice) => keyOf(choice) === currentTarget.value);
          const isAsking = currentTarget.value === askPi;
          currentTarget.value = model === undefined ? "" : keyOf(model);
          if (isAsking) void tell(choices.ask());
          else if (chosen !== undefined) void tell(choices.setModel(chosen));
        }}
      >
        {model === undefined && <option value="">Model unknown</option>}
        {known.map((choice) => (
          <option key={keyOf(choice)} value={keyOf(choice)} title={keyOf(choice)}>
            {choice.name}
          </option>
        ))}
        {more(models.kind)}
      </select>
      <select
        class="field"
        aria-label="Thinking"
        value={level ?? ""}
        onChange={({ currentTarget }) => {
          const { value } = currentTarget;
          currentTarget.value = level ?? "";
          if (value === askPi) void tell(choices.ask());
          else if (value !== "") void tell(choices.setLevel(value));
        }}
      >
        {level === undefined && <option value="">Thinking unknown</option>}
        {allLevels.map((name) => (
          <option key={name} value={name}>
            Thinking: {name}
          </option>
        ))}
        {more(levels.kind)}
      </select>
    </div>
  );
}

function keyOf({ provider, id }: ModelChoice): string {
  return `${provider}/${id}`;
}

function withCurrent(models: readonly ModelChoice[], current: ModelChoice | undefined): readonly ModelChoice[] {
  if (current === undefined || models.some((choice) => keyOf(choice) === keyOf(current))) return models;
  return [current, ...models];
}
