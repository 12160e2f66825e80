import type { Signal } from "@preact/signals";
import type { JSX } from "preact";
import type { Choices, ModelChoice } from "../state/choices.ts";
import type { Outcome } from "../state/outcome.ts";
import { useOffer } from "./context.ts";
import { Icon } from "./widgets/icon.tsx";

interface ModelFieldsProps {
  readonly choices: Choices;
  /** Gets why a choice was refused. */
  readonly said: Signal<string>;
}

/** The model and the level of thinking: what is known can be chosen. Only the button asks pi, and so starts it. */
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
  const asOf = choices.modelsAt.value;
  // What pi said before can be asked again.
  const isKnown = models.kind === "known" && levels.kind === "known" && asOf === undefined;
  const isAsking = models.kind === "asking" || levels.kind === "asking";
  useOffer({
    about: "",
    entries: known.map((choice) => ({
      label: `Model: ${nameAmong(choice, known)}`,
      isOn: model !== undefined && keyOf(choice) === keyOf(model),
      choose: () => void tell(choices.setModel(choice)),
    })),
  });
  useOffer({
    about: "",
    entries: allLevels.map((name) => ({
      label: `Thinking: ${name}`,
      isOn: name === level,
      choose: () => void tell(choices.setLevel(name)),
    })),
  });
  const askWords = choices.isAsleep.value ? "Start pi and ask for its models" : "Ask pi for its models";
  const ask = (): void => void tell(choices.ask());
  useOffer({ about: "", entries: isKnown || isAsking ? [] : [{ label: askWords, choose: ask }] });
  return (
    <div class="model-fields">
      <select
        class="field"
        aria-label="Model"
        value={model === undefined ? "" : keyOf(model)}
        onChange={({ currentTarget }) => {
          const chosen = known.find((choice) => keyOf(choice) === currentTarget.value);
          currentTarget.value = model === undefined ? "" : keyOf(model);
          if (chosen !== undefined) void tell(choices.setModel(chosen));
        }}
      >
        {model === undefined && <option value="">Model unknown</option>}
        {known.map((choice) => (
          <option key={keyOf(choice)} value={keyOf(choice)} title={keyOf(choice)}>
            {nameAmong(choice, known)}
          </option>
        ))}
      </select>
      <select
        class="field"
        aria-label="Thinking"
        value={level ?? ""}
        onChange={({ currentTarget }) => {
          const { value } = currentTarget;
          currentTarget.value = level ?? "";
          if (value !== "") void tell(choices.setLevel(value));
        }}
      >
        {level === undefined && <option value="">Thinking unknown</option>}
        {allLevels.map((name) => (
          <option key={name} value={name}>
            Thinking: {name}
          </option>
        ))}
      </select>
      {!isKnown && (
        <button
          type="button"
          class="button bare square"
          disabled={isAsking}
          aria-label={isAsking ? "Asking pi" : askWords}
          title={
            asOf === undefined ? askWords : `${askWords}. These are known since ${new Date(asOf).toLocaleString()}.`
          }
          onClick={ask}
        >
          <Icon name={isAsking ? "wait" : "again"} />
        </button>
      )}
    </div>
  );
}

function keyOf({ provider, id }: ModelChoice): string {
  return `${provider}/${id}`;
}

/** Its name, with its provider if another one has the same name. */
function nameAmong(choice: ModelChoice, all: readonly ModelChoice[]): string {
  const isUnique = all.filter(({ name }) => name === choice.name).length === 1;
  return isUnique ? choice.name : `${choice.name} (${choice.provider})`;
}

function withCurrent(models: readonly ModelChoice[], current: ModelChoice | undefined): readonly ModelChoice[] {
  if (current === undefined || models.some((choice) => keyOf(choice) === keyOf(current))) return models;
  return [current, ...models];
}
