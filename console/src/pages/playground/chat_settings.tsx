import { NumberInput, Stack, Textarea, TextInput } from "@mantine/core";
import { WORDS } from "../../vocabulary";
import { type ChatSettings, changeDrafts, useDrafts } from "./drafts";

/** Chat settings. An empty field means the model's default. */
export function ChatSettingsForm({ model }: { model: string }) {
  const settings = useDrafts().settings[model] ?? {};
  const set = (change: Partial<ChatSettings>) =>
    changeDrafts((drafts) => ({ settings: { ...drafts.settings, [model]: { ...drafts.settings[model], ...change } } }));
  const number = (name: "temperature" | "top_p" | "max_tokens" | "seed") => ({
    value: settings[name] ?? ("" as const),
    onChange: (value: number | string) => set({ [name]: value === "" ? undefined : Number(value) }),
    clampBehavior: "blur" as const,
  });
  return (
    <Stack gap="sm">
      <Textarea
        label="System prompt"
        placeholder="You answer in one sentence."
        autosize
        minRows={2}
        maxRows={8}
        value={settings.system ?? ""}
        onChange={(event) => set({ system: event.currentTarget.value || undefined })}
      />
      <div className="fields">
        <NumberInput label="Temperature" placeholder="default" min={0} max={2} step={0.1} {...number("temperature")} />
        <NumberInput label="Top p" placeholder="default" min={0} max={1} step={0.05} {...number("top_p")} />
        <NumberInput
          label="Max tokens"
          placeholder="no limit"
          min={1}
          allowDecimal={false}
          step={50}
          {...number("max_tokens")}
        />
        <NumberInput label={WORDS.seed} placeholder="random" allowDecimal={false} {...number("seed")} />
      </div>
      <TextInput
        label="Stop at"
        placeholder="a text that ends the answer"
        value={settings.stop ?? ""}
        onChange={(event) => set({ stop: event.currentTarget.value || undefined })}
      />
    </Stack>
  );
}
